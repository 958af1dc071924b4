"""Gates: what a caller must pass before a tool runs, and the refusals that say what is missing.

A gate is a function of `ctx`; the ones here are ready to use.
"""

from .ready import linked, login, scope, subscription
from .refusal import Refusal

__all__ = ["Refusal", "linked", "login", "scope", "subscription"]
