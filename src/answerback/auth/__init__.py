"""Authentication of HTTP requests: `App(auth=OAuth(...))` or `App(auth=ApiKeys(...))`.

`OAuth` needs `pip install 'answerback[auth]'`; `ApiKeys` needs nothing more. `User`, `Credentials`,
`Challenge` and `Unauthorized` are for your own `Authenticator`.
"""

from __future__ import annotations

from ..core.authentication import Authenticator, Challenge, Credentials, Unauthorized, User
from .api_keys import ApiKey, ApiKeys
from .introspection import Introspection
from .oauth import OAuth, OAuthOptions
from .token_proof import TokenProof

__all__ = [
    "ApiKey",
    "ApiKeys",
    "Authenticator",
    "Challenge",
    "Credentials",
    "Introspection",
    "OAuth",
    "OAuthOptions",
    "TokenProof",
    "Unauthorized",
    "User",
]
