"""A JWT's header and signature. Keys are only the issuer's, never from the token."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.json_value import Json
from ..errors import needs_extra
from .bearer import invalid_token

with needs_extra("auth"):
    from joserfc import jwk, jws
    from joserfc.errors import JoseError

_TYPES = ("at+jwt", "application/at+jwt", "jwt", "application/jwt")
_FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_MIN_RSA_BITS = 2048


class JwtHeader(msgspec.Struct, frozen=True):
    """The part of the header that counts; `jku`, `jwk`, `x5u` and `x5c` do not."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    cty: str | None = None
    crit: Json = msgspec.UNSET
    b64: Json = msgspec.UNSET

    @property
    def is_access_token(self) -> bool:
        """Whether the type is an access token's (RFC 9068)."""
        return self.typ is not None and self.typ.lower().endswith("at+jwt")


class VerificationKey(msgspec.Struct, frozen=True):
    """One of the issuer's public keys."""

    key: Any
    kid: str | None
    kind: str
    alg: str | None
    thumbprint: str


class _Registry(jws.JWSRegistry):
    # The whole token's size is already limited.
    max_header_length = 4096


def read_header(token: bytes, algorithms: frozenset[str]) -> JwtHeader:
    """Read the header; raises Unauthorized if no signature could make the token valid."""
    if token.count(b".") != 2:
        raise invalid_token("the token is malformed")
    encoded = token.partition(b".")[0]
    try:
        header = msgspec.json.decode(
            urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)), type=JwtHeader
        )
    except (ValueError, RecursionError):
        raise invalid_token("the token is malformed") from None
    if header.alg not in algorithms:
        raise invalid_token("the algorithm of the token is not allowed")
    if header.crit is not msgspec.UNSET or header.b64 is not msgspec.UNSET:
        raise invalid_token("the token needs an extension that is not supported")
    if header.cty is not None:
        raise invalid_token("the token contains another token")
    if header.typ is not None and header.typ.lower() not in _TYPES:
        raise invalid_token("the token is not an access token")
    return header


def read_keys(documents: list[Any]) -> list[VerificationKey]:
    """Return the keys of a key set that can verify signatures."""
    found = [_read_key(each) for each in documents]
    return [key for key in found if key is not None]


def fits(key: VerificationKey, header: JwtHeader) -> bool:
    """Return whether a key may have signed a token with this header."""
    is_same_kind = key.kind == _FAMILIES[header.alg[:2]]
    has_kid = header.kid is None or key.kid == header.kid
    return is_same_kind and has_kid and key.alg in (None, header.alg)


def verified_claims(
    token: bytes, key: VerificationKey, header: JwtHeader
) -> Mapping[str, Any] | None:
    """Return the claims; None if another key signed them."""
    registry = _Registry(algorithms=[header.alg], strict_check_header=False)
    try:
        payload = jws.deserialize_compact(token, key.key, registry=registry).payload
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None
    try:
        claims = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise invalid_token("the token is malformed")
    return claims


def _read_key(document: Json) -> VerificationKey | None:
    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    kind, kid, alg = (document.get(name) for name in ("kty", "kid", "alg"))
    # A secret in a public key set would let anyone sign.
    if not isinstance(kind, str) or kind not in _FAMILIES.values():
        return None
    public = {name: value for name, value in document.items() if name not in _PRIVATE}
    try:
        key = jwk.import_key(public)
        if kind == "RSA" and key.public_key.key_size < _MIN_RSA_BITS:  # type: ignore[union-attr]  # of the kind RSA
            return None
        thumbprint = key.thumbprint()
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return VerificationKey(
        key,
        kid if isinstance(kid, str) else None,
        kind,
        alg if isinstance(alg, str) else None,
        thumbprint,
    )


_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "x5u", "x5c", "x5t"})
