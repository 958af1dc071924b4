"""Authentication for HTTP requests: `App(auth=OAuth(...))` or `App(auth=ApiKeys(...))`.

`OAuth` requires `pip install 'answerback[auth]'`; `ApiKeys` needs no extra. `User`, `Credentials`,
`Challenge`, `Unauthorized` and `CannotAuthenticate` are for your own `Authenticator`.
"""

from __future__ import annotations

from ..core.authentication import (
    Authenticator,
    CannotAuthenticate,
    Challenge,
    Credentials,
    Unauthorized,
    User,
)
from .api_keys import ApiKey, ApiKeys
from .introspection import Introspection, TokenLookup
from .oauth import OAuth, OAuthOptions, TokenProof

__all__ = [
    "ApiKey",
    "ApiKeys",
    "Authenticator",
    "CannotAuthenticate",
    "Challenge",
    "Credentials",
    "Introspection",
    "OAuth",
    "OAuthOptions",
    "TokenLookup",
    "TokenProof",
    "Unauthorized",
    "User",
]
