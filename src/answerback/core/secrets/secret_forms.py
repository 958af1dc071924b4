"""Recognises secrets (passwords, tokens, service keys) by their form in any text.

The rules AB5xx detect secrets this way, so placeholders and well-known examples are left out.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import NamedTuple

# `app:app@db` is not a secret: developers' machines and containers use the user name as password
# for a local database.
_DSN = re.compile(
    r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://(?P<name>[^\s:/@\"'<>]{0,80}):"
    r"(?!(?P=name)@(?:127\.0\.0\.1|[\w-]+)(?![\w.-]))([^\s/@\"'<>]{1,200})@[\w\[]"
)
# ODBC, ADO, libpq and JDBC connection strings: a password counts only beside other pairs.
_KEY = (
    r"(?:server|data source|host|address|uid|user id|user|username|database|dbname|initial catalog|"
    r"driver|provider|dsn|port)=[^;=\s\"']"
)
_CONNECTION = re.compile(
    rf"(?:\b{_KEY}[^;=\n\"']{{0,120}};(?:[\w ]{{1,30}}=[^;\n\"']{{0,120}};){{0,8}}? ?"
    r"(?:password|pwd)="
    rf"|\b(?:password|pwd)=(?=[^;\s\"'<>]{{1,120}}; ?{_KEY})"
    rf"|\b{_KEY}[^;=\s]{{0,80}} (?:password|pwd)="
    r"|://[^\s\"'<>?;]{1,200}[?;](?:[\w.-]{1,40}=[^\s\"'<>&;]{0,80}[&;]){0,8}?(?:password|pwd)=)"
    r"([^;&\s\"'<>]{1,120})",
    re.IGNORECASE,
)
_BASIC = re.compile(r"\b[Bb]asic\s+([A-Za-z0-9+/]{6,200}={0,2})(?![\w+/=])")
_BEARER = re.compile(r"\b[Bb]earer\s+([A-Za-z0-9._~+/-]{20,}=*)")
_JWT = re.compile(r"(?<![\w-])eyJ[\w-]{10,}\.[\w-]{4,}\.[\w-]{10,}(?:\.[\w-]+){0,2}")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"
    r"(?:\s|\\[rn]){1,4}(?:[\w-]{1,30}: [^\n\\]{0,100}(?:\s|\\[rn]){1,4}){0,4}"
    r"[A-Za-z0-9+/=]{30,}"
    r"[A-Za-z0-9+/=\s\\]*(?:-----END (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----)?"
)
_KEYS = re.compile(
    r"""(?<![A-Za-z0-9_/+.-])(?:
      (?:AKIA|ASIA)[0-9A-Z]{16}
    | gh[pousr]_[A-Za-z0-9]{36,}
    | github_pat_[A-Za-z0-9_]{40,}
    | glpat-[\w-]{20,}
    | xox[abeprs]-[A-Za-z0-9-]{20,}
    | sk-(?:ant|proj|or|svcacct)-[\w-]{20,}
    | sk-[A-Za-z0-9]{32,}
    | [sr]k_live_[A-Za-z0-9]{20,}
    | AIza[\w-]{35}
    | npm_[A-Za-z0-9]{36}
    | hf_[A-Za-z0-9]{30,}
    | SG\.[\w-]{16,32}\.[\w-]{32,64}
    | pypi-Ag[\w-]{40,}
    )(?![A-Za-z0-9])
    | (?<=AccountKey=)[A-Za-z0-9+/]{64,}={0,2}
    """,
    re.VERBOSE,
)
_AWS_SECRET = re.compile(
    r"(?:secret_access_key|secretaccesskey)[\"'\s:=\\]{1,8}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    re.IGNORECASE,
)
# Placeholders for secrets in documentation.
_PLACEHOLDER = re.compile(
    r"(?:your|my|the|some|a|example|sample|test|fake|dummy|redacted|placeholder|changeme|secret|"
    r"password|passwd|pass|pwd|token|key|api|user|username|here|goes|p|pw)"
    r"(?:[-_ .]?(?:your|example|secret|password|pass|token|key|api|here|goes|value|word|\d{1,3}))*"
    r"|your.*|[*x•.X#]+|<.*>|\$\{?.*|%.*|\{.*|\[.*|…+",
    re.IGNORECASE,
)
_EXAMPLE_KEY = re.compile(
    r"example|your[-_]|xxxx|\*\*\*|\.\.\.|1234567890abcdef|placeholder", re.IGNORECASE
)
# `password=form.password` is code, not a password.
_EXPRESSION = re.compile(r"[A-Za-z_$]+(?:\.[A-Za-z_$]+)+|.*[()].*")
# The payload of jwt.io's sample token, and the user name in RFC 7617's examples.
_SAMPLES = (b"John Doe", b"Aladdin:")


def _is_password(word: str) -> bool:
    return not _PLACEHOLDER.fullmatch(word)


def _is_literal(word: str) -> bool:
    return _is_password(word) and not _EXPRESSION.fullmatch(word)


def _looks_random(token: str) -> bool:
    """Return whether the token has digits and many different characters, and is not an example."""
    has_digit = any(char.isdigit() for char in token)
    return has_digit and len(set(token)) > 9 and not _EXAMPLE_KEY.search(token)


def _is_web_token(token: str) -> bool:
    """Return whether the first part is a JSON web token's header; cursors resemble tokens."""
    head, payload = map(decode_base64, token.split(".")[:2])
    try:
        header = json.loads(head)
    except ValueError:
        return False
    is_sample = any(each in payload for each in _SAMPLES)
    return isinstance(header, dict) and "alg" in header and not is_sample


def _is_name_and_password(encoded: str) -> bool:
    decoded = decode_base64(encoded)
    name, colon, password = decoded.decode("ascii", "replace").partition(":")
    if not colon or not (name + password).isprintable() or "\ufffd" in name + password:
        return False
    return _is_password(password or name) and not decoded.startswith(_SAMPLES)


def decode_base64(part: str) -> bytes:
    """Return the bytes from base64 in either alphabet; empty if *part* is not base64."""
    try:
        return urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
    except ValueError:
        return b""


# The kind of each pattern, and a test of the match. A pattern's last group is the secret; without
# a group, the whole match is.
_KINDS = (
    ("dsn", _DSN, _is_password),
    ("connection", _CONNECTION, _is_literal),
    ("bearer", _BEARER, _looks_random),
    ("basic", _BASIC, _is_name_and_password),
    ("private-key", _PRIVATE_KEY, bool),
    ("key", _KEYS, _looks_random),
    ("key", _AWS_SECRET, _looks_random),
    ("token", _JWT, _is_web_token),
)


# A quick search before the exact one. Each pattern begins with a rare character, which `in` finds
# fast, and looks behind from there; one pattern for all secrets takes ten times as long.
# The patterns accept any character before a secret: in JSON it may be the n of an escaped newline.
_CLUES = tuple(
    (letter, re.compile(pattern))
    for letter, pattern in (
        ("@", r"://[^\s:/@\"'<>]{0,80}:[^\s/@\"'<>]{1,200}@"),
        ("=", r"=(?<=[RrWw][Dd]=)[^;&\s\"'<>]"),
        ("B", r"B(?:earer\s+[A-Za-z0-9._~+/-]{20}|asic\s+[A-Za-z0-9+/]{6})"),
        ("b", r"b(?:earer\s+[A-Za-z0-9._~+/-]{20}|asic\s+[A-Za-z0-9+/]{6})"),
        (
            "J",
            r"J(?:(?<=[^\w-]eyJ)|(?<=\\[a-z]eyJ)|(?<=\\u[0-9a-f]{4}eyJ)|(?<=^eyJ))"
            r"[\w-]{10,}\.[\w-]{4}",
        ),
        (
            "K",
            r"K(?:(?<=PRIVATE K)EY|(?<=AK)IA[0-9A-Z]{16}|(?<=AccountK)ey=[A-Za-z0-9+/]{64}"
            r"|(?<=ACCESS_K)EY|(?<=tAccessK)ey)",
        ),
        ("S", r"S(?:(?<=AS)IA[0-9A-Z]{16}|G\.[\w-]{16,32}\.)"),
        ("z", r"z(?<=AIz)a[\w-]{35}"),
        ("-", r"-(?:(?<=sk-)|(?<=glpat-)|(?<=xox[abeprs]-)|(?<=pypi-)Ag)[\w-]{19}"),
        (
            "_",
            r"_(?:(?:(?<=gh[pousr]_)|(?<=npm_)|(?<=hf_)|(?<=_pat_)|(?<=k_live_))\w{20}"
            r"|(?<=access_)key)",
        ),
    )
)


class Secret(NamedTuple):
    """The start and end of a secret in a text, and its kind, such as `bearer`."""

    start: int
    end: int
    kind: str


def may_hold_secrets(text: str) -> bool:
    """Test a text or its JSON encoding quickly: False only if there is no secret."""
    for letter, pattern in _CLUES:  # noqa: SIM110 -- any() takes twice as long
        if letter in text and pattern.search(text):
            return True
    return False


def secrets_in(text: str) -> Iterator[Secret]:
    """Yield the secrets in a text; placeholders and well-known examples are left out."""
    if may_hold_secrets(text):
        for kind, pattern, is_real in _KINDS:
            for found in pattern.finditer(text):
                group = pattern.groups
                if is_real(found[group]):
                    yield Secret(*found.span(group), kind)
