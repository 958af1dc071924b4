"""Gates: what a caller must pass before a tool runs, and the refusals that say what is missing.

A gate is a function of `ctx`; the ones here are ready to use.
"""

from ..core.authentication import UsedTokens
from ..tools.requires import Refusal
from .links import LinkRefused, Redeemed
from .prompts import link_prompt, login_prompt, subscription_prompt
from .ready import linked, login, scope, subscription
from .used_tokens import UsedFiles

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
