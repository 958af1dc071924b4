"""OAuth: this server accepts an issuer's access tokens (an OAuth 2.1 resource server)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from ..core.authentication import (
    AppAuth,
    AuthPage,
    Challenge,
    Credentials,
    Unauthorized,
    User,
    bearer_challenge,
)
from ..core.json_value import JsonObject
from ..errors import needs_extra
from .bearer import bearer_token, invalid_token
from .claims import Expectation, included_scopes
from .introspection import Introspection, TokenLookup
from .seen_tokens import SeenTokens, digest_of
from .urls import checked_url, is_secure, metadata_paths, metadata_url

if TYPE_CHECKING:
    from .development import DevelopmentOAuth
    from .token_check import TokenCheck
    from .token_proof import TokenProof

ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""The algorithms that are accepted if the author names none; no others can be named.

All are asymmetric: with HS256 the public keys of the issuer would be secrets that anyone knows.
"""
_EXAMPLE_URL = "https://tools.example.com/mcp"


class OAuthOptions(TypedDict, total=False):
    """The options of OAuth besides the issuer and the URL."""

    anonymous: bool
    """Serve requests without a token too: lists, and tools without gates. False by default."""
    audience: str | Sequence[str]
    """The tokens' audience, or several, for issuers that cannot use the URL, the default."""
    scopes: Sequence[str]
    """The scopes that every token must have; the challenge names them, and clients ask for them."""
    algorithms: Sequence[str]
    """The accepted signature algorithms; by default all asymmetric ones, and never others."""
    hierarchy: Mapping[str, Sequence[str]]
    """The scopes that a scope includes: `{"admin": ["read", "write"]}`."""
    introspection: Introspection | TokenLookup
    """Ask the issuer about each token, instead of checking its signature."""
    jwks: str | Mapping[str, Any]
    """The URL of the issuer's keys, or the keys; by default the metadata has the URL."""
    refresh: float
    """Seconds after which the keys are fetched again; 300 by default."""
    proof: TokenProof
    """Checks the proofs of tokens that are bound to a key, such as DPoP."""
    scope_claims: str | Sequence[str]
    """The claims that hold a token's scopes, such as `["scp", "roles"]`; by default `scope`,
    or else `scp`."""
    scope_prefix: str
    """What clients write before each scope when they ask for it, such as "api://tools/"; the
    scopes in tokens do not have it."""
    documentation: str
    """The URL of a page for client developers."""


class OAuth(AppAuth):
    """Accepts the access tokens of *issuer* for the MCP endpoint at *url*.

    *issuer* is written exactly as in its tokens and metadata, including a slash at the end.
    *url* is the whole address that clients use, such as "https://tools.example.com/mcp". It is in
    the metadata and in every challenge, and is the audience; the `Host` header never counts.
    """

    anonymous = False

    def __init__(self, *, issuer: str, url: str, **options: Unpack[OAuthOptions]) -> None:
        _check_names(options)
        self.issuer = checked_url("issuer", issuer, "https://login.example.com")
        self.url = checked_url("url", url, _EXAMPLE_URL)
        self.anonymous = options.get("anonymous", False)
        self.scopes = _checked_scopes(options.get("scopes", ()))
        self._scope_prefix = _checked_prefix(options.get("scope_prefix", ""))
        self._expected = Expectation(
            issuer,
            _texts(options.get("audience", url)),
            included_scopes(options.get("hierarchy", {})),
            "proof" in options,
            _texts(options.get("scope_claims", ())),
        )
        self.options = options
        self._proof = options.get("proof")
        self._schemes = {b"bearer"}
        if self._proof is not None:
            self._schemes.add(self._proof.scheme.lower().encode())
        self._seen = SeenTokens()
        self._metadata_url = metadata_url(url)
        self._check: TokenCheck | None = None
        _check_jwks(options.get("jwks"))
        _check_introspection(options.get("introspection"))
        _check_algorithms(options.get("algorithms", ALGORITHMS))
        _require_extra()

    @classmethod
    def development(
        cls, url: str | None = None, **options: Unpack[OAuthOptions]
    ) -> DevelopmentOAuth:
        """Make OAuth without an issuer: the server itself issues test tokens, only on this machine.

        `POST /dev/token` and the command `token` give a token for any user. *url* is by default
        the server's own, as `serve` starts it.
        """
        from .development import DevelopmentOAuth

        made = DevelopmentOAuth(url=url or "http://127.0.0.1:8000/mcp", **options)
        made.has_own_url = url is not None
        return made

    @property
    def pages(self) -> Mapping[str, AuthPage]:
        """This resource's metadata (RFC 9728), at both places where clients look for it."""
        page = AuthPage(answer=lambda _: self.metadata(), for_browsers=True)
        return dict.fromkeys(metadata_paths(self.url), page)

    def metadata(self) -> bytes:
        document: JsonObject = {
            "resource": self.url,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
        }
        if self.scopes:
            document["scopes_supported"] = self.asked_scopes(self.scopes)
        if "documentation" in self.options:
            document["resource_documentation"] = self.options["documentation"]
        return msgspec.json.encode(document)

    async def authenticate(self, credentials: Credentials) -> User | None:
        """Return the token's user; None if there is no token. Raises Unauthorized if it is bad."""
        token = bearer_token(credentials, self._schemes)
        if token is None:
            return None
        digest = digest_of(token)
        user = self._seen.find(digest)
        if user is None or (self._check is not None and not self._check.trusts_seen_tokens()):
            check = self._check or await self._load_check()
            user, until = await check.check(token)
            self._seen.keep(digest, user, until)
        if self._proof is not None:
            await self._proof.check(credentials, token, user)
        if self.scopes and not user.scopes.issuperset(self.scopes):
            raise Unauthorized(
                Challenge(
                    status=403,
                    error="insufficient_scope",
                    description="the token lacks a scope",
                    scopes=self.scopes,
                )
            )
        if user.expires is not None and user.expires <= time.time():
            raise invalid_token("the token has expired")
        return user

    def www_authenticate(self, challenge: Challenge) -> str:
        """Return the value of the `WWW-Authenticate` header for a challenge."""
        if self.scopes and challenge.status != 400:
            # Clients ask for exactly these scopes; without ours the new token would be refused.
            needed = dict.fromkeys((*self.scopes, *challenge.scopes))
            challenge = msgspec.structs.replace(challenge, scopes=tuple(needed))
        if self._scope_prefix:
            asked = self.asked_scopes(challenge.scopes)
            challenge = msgspec.structs.replace(challenge, scopes=asked)
        return bearer_challenge(challenge, resource_metadata=self._metadata_url)

    def asked_scopes(self, scopes: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self._scope_prefix}{scope}" for scope in scopes)

    def forget_tokens(self) -> None:
        """Check every token again, for example after a token was revoked."""
        self._seen.clear()

    async def _load_check(self) -> TokenCheck:
        # Imported with the first token: it needs cryptography and an HTTP client. That takes
        # 200 milliseconds, and other requests continue meanwhile.
        import asyncio

        check_type = await asyncio.to_thread(_token_check)
        if self._check is None:
            self._check = check_type(self._expected, self.options, self._seen.clear)
        return self._check

    def __repr__(self) -> str:
        return f"<OAuth issuer={self.issuer!r} url={self.url!r}>"


def _token_check() -> type[TokenCheck]:
    from .token_check import TokenCheck

    return TokenCheck


def _check_names(options: OAuthOptions) -> None:
    unknown = sorted(set(options) - set(OAuthOptions.__annotations__))
    if unknown:
        from ..core.author_errors import did_you_mean, similar_names

        # FastMCP and the SDK call the scopes `required_scopes`.
        name = unknown[0].removeprefix("required_")
        hint = did_you_mean(similar_names(name, OAuthOptions.__annotations__))
        raise TypeError(f"OAuth has no option {unknown[0]!r}" + (hint and f"; {hint}"))


def _checked_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    if isinstance(scopes, str):
        raise TypeError(f"scopes should be a list, such as {scopes.split()!r}")
    if "offline_access" in scopes:
        raise ValueError("offline_access is between client and issuer; leave it out of scopes")
    for scope in scopes:
        if not scope or not _is_scope_text(scope):
            raise ValueError(f"{scope!r} cannot be a scope")
    return tuple(scopes)


def _checked_prefix(prefix: object) -> str:
    if not isinstance(prefix, str) or not _is_scope_text(prefix):
        raise ValueError(f"scope_prefix={prefix!r} should be a text such as 'api://tools/'")
    return prefix


def _is_scope_text(text: str) -> bool:
    return all("!" <= char <= "~" and char not in '"\\' for char in text)


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check_jwks(jwks: str | Mapping[str, Any] | None) -> None:
    if isinstance(jwks, str) and not is_secure(jwks):
        raise ValueError(f"jwks={jwks!r} should be an https URL, or the keys")


def _check_introspection(given: object) -> None:
    has_members = callable(getattr(given, "claims", None)) and hasattr(given, "seconds")
    is_lookup = has_members and not isinstance(given, type)
    if not (given is None or isinstance(given, Introspection) or is_lookup):
        raise TypeError(
            f"introspection=<{type(given).__name__}> should be an Introspection(…), or an object "
            "with `seconds` and `async def claims(token)`"
        )


def _check_algorithms(algorithms: Sequence[str]) -> None:
    unknown = [name for name in algorithms if name not in ALGORITHMS]
    if isinstance(algorithms, str) or unknown or not algorithms:
        raise ValueError(f"algorithms={algorithms!r} should be some of {', '.join(ALGORITHMS)}")


def _require_extra() -> None:
    """Raise MissingExtraError when the app is made, rather than at the first token."""
    from importlib.util import find_spec

    with needs_extra("auth"):
        if find_spec("joserfc") is None:
            raise ModuleNotFoundError("No module named 'joserfc'", name="joserfc")
