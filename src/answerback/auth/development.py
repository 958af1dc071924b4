"""OAuth for development: the server itself issues test tokens, only to clients on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Unpack
from urllib.parse import urlsplit

import msgspec

from ..core.authentication import AuthPage
from ..errors import InvalidInput, needs_extra
from .bearer import is_loopback_url
from .oauth import OAuth, OAuthOptions

TOKEN_PATH = "/dev/token"
_KID = "development"
_DEFAULT_SECONDS = 3600
_UNUSED = ("audience", "introspection", "jwks", "proof", "scope_claims", "scope_prefix")
"""Options for the real issuer, which do not apply to test tokens."""


class TokenRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request for a test token."""

    user: str = "developer"
    scopes: list[str] = []
    seconds: float = _DEFAULT_SECONDS
    claims: dict[str, Any] = {}
    """Additional claims for the token."""


class DevelopmentOAuth(OAuth):
    """Accepts only test tokens that it has issued; created by `OAuth.development`.

    *url* is the MCP endpoint, on this machine. The signing key is generated when the server
    starts, and no other server accepts the tokens.
    """

    loopback_only = True

    def __init__(self, *, url: str, **options: Unpack[OAuthOptions]) -> None:
        if not is_loopback_url(url):
            raise ValueError(f"url={url!r} should be on this machine: test tokens only work there")
        with needs_extra("auth"):
            from joserfc import jwk
        self._key = jwk.generate_key("EC", "P-256", parameters={"kid": _KID})
        parts = urlsplit(url)
        options = {**options, "jwks": {"keys": [self._key.as_dict(private=False)]}}
        super().__init__(issuer=f"{parts.scheme}://{parts.netloc}", url=url, **options)

    @property
    def pages(self) -> Mapping[str, AuthPage]:
        return {**super().pages, TOKEN_PATH: AuthPage(answer=self._answer, method="POST")}

    def issue(
        self,
        user: str = "developer",
        scopes: list[str] | tuple[str, ...] = (),
        *,
        seconds: float = _DEFAULT_SECONDS,
        claims: Mapping[str, Any] | None = None,
    ) -> str:
        """Issue a token for any user, with *scopes* and the scopes that every token needs.

        The token is valid for *seconds*. *claims* are additional claims.
        """
        from joserfc import jws

        now = time.time()
        content = {
            **(claims or {}),
            "iss": self.issuer,
            "aud": self.url,
            "sub": user,
            "client_id": "development",
            "iat": int(now),
            "exp": now + seconds,
            "scope": " ".join(dict.fromkeys((*self.scopes, *scopes))),
        }
        header = {"alg": "ES256", "kid": _KID, "typ": "at+jwt"}
        return jws.serialize_compact(header, json.dumps(content), self._key)

    def _answer(self, body: bytes) -> bytes:
        try:
            asked = msgspec.json.decode(body or b"{}", type=TokenRequest)
            token = self.issue(asked.user, asked.scopes, seconds=asked.seconds, claims=asked.claims)
        except (msgspec.MsgspecError, ValueError) as exc:
            hint = "send JSON such as {'user': 'alice', 'scopes': ['read']}"
            raise InvalidInput(f"Cannot issue a test token: {exc}; {hint}") from None
        return msgspec.json.encode(
            {"access_token": token, "token_type": "Bearer", "expires_in": asked.seconds}
        )


def development_of(auth: OAuth, base: str) -> DevelopmentOAuth:
    """Return a copy of *auth* that uses test tokens, for a server at *base* on this machine."""
    options: Any = {name: value for name, value in auth.options.items() if name not in _UNUSED}
    return DevelopmentOAuth(url=f"{base}/mcp", **options)
