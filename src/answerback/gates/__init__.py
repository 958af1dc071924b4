"""Gates: what a caller must pass before a tool runs, and the refusals that say what is missing.

A gate is a function that takes `ctx`; the ones here come ready-made.
"""

from ..core.authentication import UsedTokens
from ..tools.requires import Refusal
from .builtin import linked, login, scope, subscription
from .links import LinkRefused, Redeemed, UsedFiles
from .prompts import link_prompt, login_prompt, subscription_prompt

__all__ = [
    "LinkRefused",
    "Redeemed",
    "Refusal",
    "UsedFiles",
    "UsedTokens",
    "link_prompt",
    "linked",
    "login",
    "login_prompt",
    "scope",
    "subscription",
    "subscription_prompt",
]
