"""Authentication of HTTP requests: `App(auth=OAuth(...))` or `App(auth=ApiKeys(...))`.

`OAuth` needs `pip install 'answerback[auth]'`; `ApiKeys` needs nothing more.
"""

from __future__ import annotations

from .api_keys import ApiKey, ApiKeys
from .introspection import Introspection
from .oauth import OAuth, OAuthOptions
from .token_proof import TokenProof

__all__ = ["ApiKey", "ApiKeys", "Introspection", "OAuth", "OAuthOptions", "TokenProof"]
