"""OAuth: accepts an issuer's access tokens, as an OAuth 2.1 resource server."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from sys import float_info
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

import msgspec

from ..core.authentication import (
    AppAuth,
    AuthPage,
    Challenge,
    Credentials,
    Unauthorized,
    User,
    bearer_challenge,
    is_scope_text,
)
from ..core.json_value import Json, JsonObject, is_number
from ..errors import needs_extra
from .bearer import (
    SeenTokens,
    bearer_token,
    checked_url,
    digest_of,
    invalid_token,
    is_secure,
    metadata_paths,
    metadata_url,
)
from .introspection import Introspection, TokenLookup

if TYPE_CHECKING:
    from .development import DevelopmentOAuth
    from .token_check import TokenCheck


class TokenProof(Protocol):
    """Checks on each request that the client holds its token's key, for `OAuth(proof=...)`.

    Without it, a bound token (one with a `cnf` claim) is refused.
    """

    scheme: str
    """The Authorization scheme to accept in addition to Bearer, such as "DPoP"."""

    async def check(self, credentials: Credentials, token: bytes, user: User) -> None:
        """Raise Unauthorized if the proof is missing or bad.

        Called for every request, even if the token has been seen before. `user.claims["cnf"]`
        names the key. A bound token sent with the Bearer scheme must be refused.
        """


LEEWAY = 60.0
"""How many seconds the identity provider's clock may be ahead of ours."""
_MAX_SUBJECT = 1024
_ONLY_IN_ID_TOKENS = ("at_hash", "c_hash", "s_hash", "nonce")
_CLIENTS = ("client_id", "azp", "appid", "cid")


class Expectation(msgspec.Struct, frozen=True):
    """The claims that a token must have."""

    issuer: str
    audiences: tuple[str, ...]
    hierarchy: Mapping[str, frozenset[str]]
    """All scopes that a scope includes, directly or indirectly."""
    may_be_bound: bool = False
    """Whether a token may be bound to a key (`cnf`); True if proofs are checked."""
    scope_claims: tuple[str, ...] = ()
    """The claims that hold the scopes; if empty, `scope` or else `scp`."""


def check_claims(claims: Mapping[str, Any], expected: Expectation, *, is_jwt: bool) -> User:
    """Return a token's user; raises Unauthorized if the token is not valid for this server.

    An introspection response may lack the issuer and the expiry; a JWT may not.
    """
    issuer = claims.get("iss")
    if issuer != expected.issuer and (is_jwt or issuer is not None):
        raise invalid_token("the token is from another issuer")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if not any(isinstance(each, str) and each in expected.audiences for each in audiences):
        raise invalid_token("the token is for another audience")
    expires = _check_times(claims, needs_expiry=is_jwt)
    if "cnf" in claims and not expected.may_be_bound:
        raise invalid_token("the token is bound to a key, but this server does not check proofs")
    if expected.scope_claims:
        listed = (_listed(claims.get(name)) for name in expected.scope_claims)
        scopes: frozenset[str] = frozenset().union(*listed)
    else:
        # Entra and Okta call it `scp`.
        scopes = _listed(claims.get("scope", claims.get("scp")))
    subject = claims.get("sub")
    if subject is None and not is_jwt:
        # Some providers identify a program only by its client id.
        subject = claims.get("client_id")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT:
        raise invalid_token("the token has no subject")
    clients = (claims.get(name) for name in _CLIENTS)
    return User(
        subject=subject,
        issuer=expected.issuer,
        scopes=scopes.union(*(expected.hierarchy.get(scope, ()) for scope in scopes)),
        client=next((client for client in clients if isinstance(client, str)), None),
        # Requests with the same token share it, so no tool may change it.
        claims=MappingProxyType(claims),
        expires=expires,
    )


def refuse_other_kinds(claims: Mapping[str, Any], *, is_marked: bool) -> None:
    """Raise Unauthorized for an ID token, a refresh token or a logout token.

    *is_marked* says whether the header's type is `at+jwt`, which only access tokens have.
    """
    # Keycloak and Cognito put the kind in a claim.
    kind = claims.get("typ", claims.get("token_use"))
    if isinstance(kind, str) and kind.lower() not in ("bearer", "dpop", "access", "at+jwt", "jwt"):
        raise invalid_token("the token is not an access token")
    if "events" in claims:
        raise invalid_token("the token is not an access token")
    if not (is_marked or kind) and any(name in claims for name in _ONLY_IN_ID_TOKENS):
        raise invalid_token("the token is an ID token; send the access token")


def included_scopes(hierarchy: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return everything that each scope includes: `{"admin": ["write"], "write": ["read"]}`."""
    direct: dict[str, tuple[str, ...]] = {}
    for scope, given in hierarchy.items():
        if isinstance(given, str):
            raise TypeError(f"hierarchy[{scope!r}] should be a list of scopes, such as [{given!r}]")
        direct[scope] = tuple(given)
    found: dict[str, frozenset[str]] = {}
    for scope in direct:
        seen: set[str] = set()
        waiting = [scope]
        while waiting:
            for below in direct.get(waiting.pop(), ()):
                if below not in seen:
                    seen.add(below)
                    waiting.append(below)
        found[scope] = frozenset(seen)
    return found


def _check_times(claims: Mapping[str, Any], *, needs_expiry: bool) -> float | None:
    """Return the expiry time. The issuer's clock may be a little ahead of ours, but not behind."""
    now = time.time()
    expires = _time(claims, "exp")
    if expires is None and needs_expiry:
        raise invalid_token("the token has no expiry")
    if expires is not None and expires <= now:
        raise invalid_token("the token has expired")
    for name in ("nbf", "iat"):
        begins = _time(claims, name)
        if begins is not None and begins > now + LEEWAY:
            raise invalid_token("the token is not valid yet")
    return expires


def _time(claims: Mapping[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    # An int may be too large for a float.
    if not is_number(value) or not abs(value) <= float_info.max:
        raise invalid_token(f"the {name} claim is not a time")
    return float(value)


def _listed(found: Json) -> frozenset[str]:
    """Return the names in a claim: a space-separated string, or a list."""
    if isinstance(found, str):
        # Not split(), which also splits on other whitespace.
        return frozenset(found.split(" ")) - {""}
    if isinstance(found, list):
        return frozenset(each for each in found if isinstance(each, str))
    return frozenset()


ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
)
"""The algorithms accepted by default; the author can only choose from these.

All are asymmetric: with HS256, anyone could sign tokens with the issuer's public keys.
"""
_EXAMPLE_URL = "https://tools.example.com/mcp"


class OAuthOptions(TypedDict, total=False):
    """Options for `OAuth`, in addition to the issuer and the URL."""

    anonymous: bool
    """Also serve requests without a token: lists, and tools without gates. False by default."""
    audience: str | Sequence[str]
    """The accepted audience or audiences, if the issuer cannot use the default, the URL."""
    scopes: Sequence[str]
    """The scopes that every token must have; the challenge names them, and clients request them."""
    algorithms: Sequence[str]
    """The accepted signature algorithms; all asymmetric ones by default, and never any others."""
    hierarchy: Mapping[str, Sequence[str]]
    """The scopes that a scope includes: `{"admin": ["read", "write"]}`."""
    introspection: Introspection | TokenLookup
    """Ask the issuer about each token, instead of checking its signature."""
    jwks: str | Mapping[str, Any]
    """The issuer's keys, or their URL; by default, the URL comes from the issuer's metadata."""
    refresh: float
    """Seconds after which the keys are fetched again; 300 by default."""
    proof: TokenProof
    """Checks proofs for tokens that are bound to a key, such as DPoP."""
    scope_claims: str | Sequence[str]
    """The claims that hold a token's scopes, such as `["scp", "roles"]`; by default `scope`,
    or else `scp`."""
    scope_prefix: str
    """The prefix that clients put before each scope when they request it, such as "api://tools/";
    the scopes in tokens do not have it."""
    documentation: str
    """The URL of a page for client developers."""


class OAuth(AppAuth):
    """Accepts access tokens from *issuer* for the MCP endpoint at *url*.

    *issuer* must be exactly as in its tokens and metadata, including any trailing slash. *url*
    is the full address that clients use, such as "https://tools.example.com/mcp". It appears in
    the metadata and in every challenge, and is the audience; the `Host` header is never used.
    """

    anonymous = False

    def __init__(self, *, issuer: str, url: str, **options: Unpack[OAuthOptions]) -> None:
        unknown = sorted(set(options) - set(OAuthOptions.__annotations__))
        if unknown:
            from ..core.author_errors import did_you_mean, similar_names

            # FastMCP and the SDK call the scopes `required_scopes`.
            name = unknown[0].removeprefix("required_")
            hint = did_you_mean(similar_names(name, OAuthOptions.__annotations__))
            raise TypeError(f"OAuth has no option {unknown[0]!r}" + (hint and f"; {hint}"))
        self.issuer = checked_url("issuer", issuer, "https://login.example.com")
        self.url = checked_url("url", url, _EXAMPLE_URL)
        self.anonymous = options.get("anonymous", False)
        scopes = options.get("scopes", ())
        if isinstance(scopes, str):
            raise TypeError(f"scopes should be a list, such as {scopes.split()!r}")
        if "offline_access" in scopes:
            raise ValueError("offline_access is between client and issuer; leave it out of scopes")
        for scope in scopes:
            if not scope or not is_scope_text(scope):
                raise ValueError(f"{scope!r} cannot be used as a scope")
        self.scopes = tuple(scopes)
        prefix: object = options.get("scope_prefix", "")
        if not isinstance(prefix, str) or not is_scope_text(prefix):
            raise ValueError(f"scope_prefix={prefix!r} should be a string such as 'api://tools/'")
        self._scope_prefix = prefix
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
        jwks = options.get("jwks")
        if isinstance(jwks, str) and not is_secure(jwks):
            raise ValueError(f"jwks={jwks!r} should be an https URL, or the keys")
        _check_introspection(options.get("introspection"))
        algorithms = options.get("algorithms", ALGORITHMS)
        unknown = [name for name in algorithms if name not in ALGORITHMS]
        if isinstance(algorithms, str) or unknown or not algorithms:
            raise ValueError(f"algorithms={algorithms!r} should be some of {', '.join(ALGORITHMS)}")
        # Raise this when the app is created, not when the first token arrives.
        with needs_extra("auth"):
            from importlib.util import find_spec

            if find_spec("joserfc") is None:
                raise ModuleNotFoundError("No module named 'joserfc'", name="joserfc")

    @classmethod
    def development(
        cls, url: str | None = None, **options: Unpack[OAuthOptions]
    ) -> DevelopmentOAuth:
        """Create an OAuth without an issuer: the server issues test tokens, only on this machine.

        `POST /dev/token` and the `token` command issue a token for any user. *url* defaults to the
        URL at which `serve` starts the server.
        """
        from .development import DevelopmentOAuth

        made = DevelopmentOAuth(url=url or "http://127.0.0.1:8000/mcp", **options)
        made.has_own_url = url is not None
        return made

    @property
    def pages(self) -> Mapping[str, AuthPage]:
        """This resource's metadata (RFC 9728), in the places where clients look for it."""
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
            # Clients request exactly these scopes; without ours, the new token would be refused.
            needed = dict.fromkeys((*self.scopes, *challenge.scopes))
            challenge = msgspec.structs.replace(challenge, scopes=tuple(needed))
        if self._scope_prefix:
            asked = self.asked_scopes(challenge.scopes)
            challenge = msgspec.structs.replace(challenge, scopes=asked)
        return bearer_challenge(challenge, resource_metadata=self._metadata_url)

    def asked_scopes(self, scopes: Sequence[str]) -> tuple[str, ...]:
        return tuple(f"{self._scope_prefix}{scope}" for scope in scopes)

    def forget_tokens(self) -> None:
        """Check every token again, for example after one has been revoked."""
        self._seen.clear()

    async def _load_check(self) -> TokenCheck:
        # Imported when the first token arrives, because it needs cryptography and an HTTP client.
        # The import takes 200 milliseconds, so it runs in a thread.
        import asyncio

        check_type = await asyncio.to_thread(_token_check)
        if self._check is None:
            self._check = check_type(self._expected, self.options, self._seen.clear)
        return self._check

    def __repr__(self) -> str:
        return f"<OAuth issuer={self.issuer!r} url={self.url!r}>"


def _token_check() -> type[TokenCheck]:
    # This loads joserfc and the HTTP client, which an app that receives no tokens does not need.
    from .token_check import TokenCheck

    return TokenCheck


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _check_introspection(given: object) -> None:
    has_members = callable(getattr(given, "claims", None)) and hasattr(given, "seconds")
    is_lookup = has_members and not isinstance(given, type)
    if not (given is None or isinstance(given, Introspection) or is_lookup):
        raise TypeError(
            f"introspection=<{type(given).__name__}> should be an Introspection(…), or an object "
            "with `seconds` and `async def claims(token)`"
        )
