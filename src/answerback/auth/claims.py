"""A token's claims: which ones make it valid, and the user that they describe."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from sys import float_info
from types import MappingProxyType
from typing import Any

import msgspec

from ..core.authentication import User
from ..core.json_value import Json, is_number
from .bearer import invalid_token

LEEWAY = 60.0
"""Seconds that the identity provider's clock may be ahead of ours."""
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
    """Whether a token may be bound to a key (`cnf`), because something checks the proof."""
    scope_claims: tuple[str, ...] = ()
    """The claims with the scopes; if empty, `scope` or else `scp`."""


def check_claims(claims: Mapping[str, Any], expected: Expectation, *, is_jwt: bool) -> User:
    """Return a token's user; raises Unauthorized if the token is not valid for this server.

    An introspection's answer may lack the issuer and the expiry, a JWT may not.
    """
    issuer = claims.get("iss")
    if issuer != expected.issuer and (is_jwt or issuer is not None):
        raise invalid_token("the token is of another issuer")
    _check_audience(claims.get("aud"), expected.audiences)
    expires = _check_times(claims, needs_expiry=is_jwt)
    if "cnf" in claims and not expected.may_be_bound:
        raise invalid_token("the token is bound to a key, and no proof of the key is checked here")
    scopes = _scopes(claims, expected.scope_claims)
    return User(
        subject=_subject(claims, is_jwt),
        issuer=expected.issuer,
        scopes=scopes.union(*(expected.hierarchy.get(scope, ()) for scope in scopes)),
        client=_client(claims),
        # Requests with the same token share it, so no tool may change it.
        claims=MappingProxyType(claims),
        expires=expires,
    )


def refuse_other_kinds(claims: Mapping[str, Any], *, is_marked: bool) -> None:
    """Raise Unauthorized for an ID token, a refresh token or a logout token.

    *is_marked* says whether the header has `at+jwt`, which only access tokens have.
    """
    # Keycloak and Cognito name the kind in a claim.
    kind = claims.get("typ", claims.get("token_use"))
    if isinstance(kind, str) and kind.lower() not in ("bearer", "dpop", "access", "at+jwt", "jwt"):
        raise invalid_token("the token is not an access token")
    if "events" in claims:
        raise invalid_token("the token is not an access token")
    if not (is_marked or kind) and any(name in claims for name in _ONLY_IN_ID_TOKENS):
        raise invalid_token("the token is an ID token; send the access token")


def included_scopes(hierarchy: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return all that each scope includes: `{"admin": ["write"], "write": ["read"]}`."""
    direct = {scope: _names(scope, given) for scope, given in hierarchy.items()}
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


def _names(scope: str, given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise TypeError(f"hierarchy[{scope!r}] should be a list of scopes, such as [{given!r}]")
    return tuple(given)


def _check_audience(found: Json, wanted: tuple[str, ...]) -> None:
    values = found if isinstance(found, list) else [found]
    if not any(isinstance(value, str) and value in wanted for value in values):
        raise invalid_token("the token is for another audience")


def _check_times(claims: Mapping[str, Any], *, needs_expiry: bool) -> float | None:
    """Return the expiry time. The issuer's clock may be a little ahead of ours, but not late."""
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
        raise invalid_token(f"the claim {name} is not a time")
    return float(value)


def _subject(claims: Mapping[str, Any], is_jwt: bool) -> str:
    found = claims.get("sub")
    if found is None and not is_jwt:
        # Some providers describe a program's token only by its client.
        found = claims.get("client_id")
    if not isinstance(found, str) or not 0 < len(found) <= _MAX_SUBJECT:
        raise invalid_token("the token has no subject")
    return found


def _scopes(claims: Mapping[str, Any], names: tuple[str, ...]) -> frozenset[str]:
    """Return the scopes in the named claims; by default in `scope`, or in `scp` (Entra, Okta)."""
    if not names:
        return _listed(claims.get("scope", claims.get("scp")))
    return frozenset().union(*(_listed(claims.get(name)) for name in names))


def _listed(found: Json) -> frozenset[str]:
    """Return the names in a claim: a text with spaces between them, or a list."""
    if isinstance(found, str):
        # Not split(), which takes other characters for spaces too.
        return frozenset(found.split(" ")) - {""}
    if isinstance(found, list):
        return frozenset(each for each in found if isinstance(each, str))
    return frozenset()


def _client(claims: Mapping[str, Any]) -> str | None:
    values = (claims.get(name) for name in _CLIENTS)
    return next((value for value in values if isinstance(value, str)), None)
