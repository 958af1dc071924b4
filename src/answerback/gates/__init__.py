"""Gates: checks that callers must pass before a tool runs, and refusals that say what is missing.

A gate is a function that takes `ctx`; these are the built-in ones.
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
