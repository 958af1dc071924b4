"""Recognises secrets by their names and forms, and masks them in text, values and URLs."""

from __future__ import annotations

import json
import os.path
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from .json_value import Json

_MAX_LENGTH = 80
_SECRET = re.compile(
    r"pass?(?:word|wort|wd|phrase|code)|kennwort|secret|api[-_ .]?key|private[-_ .]?key"
    r"|access[-_ .]?key|credential|authorization|(?:^|[-_ .a-z])token$"
    r"|(?:^|[-_ .])(?:pwd|pass|pin|cvv|cvc|auth)\d{0,2}$",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[-_ .]+")
_BRACKETS = re.compile(r"[\[\]'\"]+")
_NO_NAME = re.compile(r"[^\w.-]+")
# Names with one wrong, missing, extra or swapped letter also count. Shorter words are not in
# the list, because they are one letter away from ordinary names.
_WORDS = ("password", "passphrase", "passcode", "secret", "apikey", "privatekey", "credential")


def is_secret_name(name: str, aliases: frozenset[str] = frozenset()) -> bool:
    """Return whether a member with this name probably holds a secret; *aliases* always do."""
    if name in aliases:
        return True
    if len(name) > _MAX_LENGTH:
        name = name[-_MAX_LENGTH:]
    if _SECRET.search(name):
        return True
    joined = _SEPARATORS.sub("", name).rstrip("0123456789").casefold()
    if _SECRET.search(joined):
        return True
    parts = {joined, *(part.casefold() for part in _SEPARATORS.split(name))}
    return any(_is_misspelt(part, word) for part in parts for word in _WORDS)


def is_secret_path(path: str, aliases: frozenset[str] = frozenset()) -> bool:
    """Return whether any name in a path such as `login.keys[0]` is a secret's name."""
    quoted = _BRACKETS.split(path)
    # A dot separates two names or is part of a quoted name.
    names = {*quoted, *(name for each in quoted for name in each.split("."))}
    return any(is_secret_name(name, aliases) for name in names)


def has_secret_name(text: str) -> bool:
    """Return whether the text looks like a JSON array or object that contains a secret's name."""
    if not text.lstrip().startswith(("[", "{")):
        return False
    return any(map(is_secret_name, _NO_NAME.split(text)))


def aliases_of_secrets(values: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """Return all the names of each value that has a secret's name.

    Each item in *values* lists one value's names, such as a parameter's name and its alias.
    """
    return frozenset(name for names in values if any(map(is_secret_name, names)) for name in names)


def _is_misspelt(part: str, word: str) -> bool:
    """Return whether one edit turns *part* into *word*; the first letter must be the same."""
    if part[:1] != word[:1] or abs(len(part) - len(word)) > 1:
        return False
    start = next((i for i, (a, b) in enumerate(zip(part, word, strict=False)) if a != b), None)
    if start is None:
        return True
    rest, expected = part[start:], word[start:]
    swapped = rest[1::-1] + rest[2:]
    return expected in (swapped, rest[1:]) or expected[1:] in (rest, rest[1:])


# `app:app@db` is not a secret: developers' machines and containers use the user name as the
# password for a local database.
_DSN = re.compile(
    r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://(?P<name>[^\s:/@\"'<>]{0,80}):"
    r"(?!(?P=name)@(?:127\.0\.0\.1|[\w-]+)(?![\w.-]))([^\s/@\"'<>]{1,200})@[\w\[]"
)
# ODBC, ADO, libpq and JDBC connection strings: a password counts only next to other pairs.
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
    """Return whether the first part is a JSON Web Token header; cursors look like tokens too."""
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
    """Decode base64 in either alphabet; return empty bytes if *part* is not base64."""
    try:
        return urlsafe_b64decode(part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4))
    except ValueError:
        return b""


# Each pattern's kind, and a test for its matches. A pattern's last group is the secret; without
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
# quickly, and looks behind from there; one pattern for all secrets takes ten times as long.
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
    """The start and end of a secret in a string, and its kind, such as `bearer`."""

    start: int
    end: int
    kind: str


def may_hold_secrets(text: str) -> bool:
    """Quickly check text or its JSON encoding; False means that there is no secret."""
    for letter, pattern in _CLUES:  # noqa: SIM110 -- any() takes twice as long
        if letter in text and pattern.search(text):
            return True
    return False


def secrets_in(text: str) -> Iterator[Secret]:
    """Yield the secrets in the text; placeholders and well-known examples are skipped."""
    if may_hold_secrets(text):
        for kind, pattern, is_real in _KINDS:
            for found in pattern.finditer(text):
                group = pattern.groups
                if is_real(found[group]):
                    yield Secret(*found.span(group), kind)


_MAX_VALUES = 2_000
# A shorter value occurs inside many words, and masking it would make the text unreadable.
_MIN_LENGTH = 4
# How many characters are enough to recognise a value if the rest was cut off.
_START_LENGTH = 16


def walk_values(
    value: Json, aliases: frozenset[str] = frozenset(), is_secret: bool = False
) -> Iterator[tuple[Json, bool]]:
    """Yield *value* and every value nested in it, and whether a name above makes it a secret.

    JSON inside strings is searched too. Containers, null and booleans are not secrets.
    """
    # A stack instead of recursion, because JSON in a string adds more depth. It holds
    # iterators, so that a caller that stops early does not pay for the rest.
    waiting = [iter([(value, is_secret)])]
    while waiting:
        pair = next(waiting[-1], None)
        if pair is None:
            waiting.pop()
            continue
        value, is_secret = pair
        yield value, is_secret and not isinstance(value, dict | list | bool | None)
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            value = decode_json_or_text(value)
        if isinstance(value, dict):
            waiting.append(_members(value, aliases, is_secret))
        elif isinstance(value, list):
            waiting.append(zip(value, repeat(is_secret), strict=False))


def _members(
    value: dict[str, Json], aliases: frozenset[str], is_secret: bool
) -> Iterator[tuple[Json, bool]]:
    for name, each in value.items():
        yield each, is_secret or is_secret_name(name, aliases)


def decode_json_or_text(body: bytes | str) -> Json:
    """Return the JSON value in *body*, or *body* as text if it is not JSON."""
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body if isinstance(body, str) else body.decode("utf-8", "replace")


def quotes_secret(
    text: str, sent: Json, path: str = "", aliases: frozenset[str] = frozenset()
) -> bool:
    """Return whether the text may contain a value that was sent under a secret's name.

    *path* is the path to *sent*. Also True if *sent* has too many values to check.
    """
    values = walk_values(sent, aliases, is_secret_path(path, aliases))
    for count, (value, is_secret) in enumerate(values):
        if count == _MAX_VALUES:
            return True
        # Many Python messages quote a value's `repr`.
        secret = str(value) if is_secret else ""
        if secret and (secret in text or repr(secret)[1:-1] in text):
            return True
    return False


def written_forms(value: str) -> tuple[str, ...]:
    """Return a secret value as is and as written by Python and JSON; empty if it is too short."""
    if len(value) < _MIN_LENGTH:
        return ()
    in_json = value.replace("\\", "\\\\").replace('"', '\\"')
    in_python = (repr(value)[1:-1], value.encode("unicode_escape").decode())
    return tuple(dict.fromkeys((value, *in_python, in_json, in_json.replace("/", "\\/"))))


def known_spans(text: str, known: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of *known* values in the text, even if cut off."""
    for value in known:
        first = value[:_START_LENGTH]
        start = text.find(first)
        while start >= 0:
            found = (text[start : start + len(value)], value)
            end = start + len(os.path.commonprefix(found))  # noqa: RUF071 -- character by character
            yield start, end
            start = text.find(first, end)


# A user name without a password may be a token. The last form is a password that contains a slash,
# not a port: `user:pass/word@host`.
_LOGIN = re.compile(
    r"""://(?:[^\s/?#@:]*:(?P<password>[^\s/?#]*)
    | (?P<user>[^\s/?#]+)
    | [^\s/?#@:\[]*:(?!\d{1,5}(?:[/?#\s]|$))(?P<with_slash>\S{1,4000}))@
    """,
    re.VERBOSE,
)
_PARAMETER = re.compile(r"(?<=[?&;#])([^\s=&;#?]+)=")
_PARAMETER_VALUE = re.compile(r"[^\s&#]+")


def url_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each secret in URLs: passwords, lone user names, parameters."""
    if "://" in text:
        for found in _LOGIN.finditer(text):
            yield found.span(found.lastgroup or 0)
        yield from _parameter_spans(text)


def secrets_in_url(url: str) -> Iterator[str]:
    """Yield the values of parameters with a secret's name, both raw and unquoted."""
    for start, end in _parameter_spans(url):
        yield from (url[start:end], unquote(url[start:end]))


def secrets_in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of headers with a secret's name, and the tokens and passwords in them.

    The names in *headers* must be lowercase.
    """
    for name, value in headers.items():
        if name == "cookie":
            yield from (each.partition("=")[2].strip() for each in value.split(";"))
        elif is_secret_name(name):
            scheme, _, token = value.partition(" ")
            yield from (value, token.strip())
            if scheme.lower() == "basic":
                yield decode_base64(token).decode("utf-8", "replace").partition(":")[2]


def _parameter_spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _PARAMETER.search(text, at):
        at = found.end()
        if is_secret_name(unquote(found[1])) and (value := _PARAMETER_VALUE.match(text, at)):
            at = value.end()
            yield value.span()


MASK = "***"
_MAX_KNOWN = 100
_NAME = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z][\w.-]{1,60})(?:\\?["']\]?){0,2}
    (?P<sign>\s{0,3}(?:=>|:=|[=:])\s{0,3}|\s{1,3}(?=\\?["']))
    """,
    re.VERBOSE,
)
# A quoted value ends at its closing quote, which is escaped if the text is JSON inside JSON.
_VALUE = re.compile(
    r"""(?:(?:Bearer|Basic|Token)\s+)?
    (?:\\"(?P<escaped>(?:[^"\\]|\\[^"])+)|"(?P<double>(?:[^"\\]|\\.)+)|'(?P<single>(?:[^'\\]|\\.)+)
    |(?P<bare>[^\s,;&"'<>(){}\[\]\\]+))
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# How a message about a value begins, after the value's name and a colon.
_MESSAGE = re.compile(
    r"(?:expected|missing|required|unknown|refused|must|should|invalid|wrong|incorrect|not|is|was"
    r"|no|too|number|value|field|input|string|the|an?|does|cannot|please|nested|got|null|true|false"
    r"|none)\b",
    re.IGNORECASE,
)
# A command option, or a variable with its value.
_OPTION = re.compile(r"([\w.-]+)(?:(=)|\Z)")


def mask(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with `***` for secrets, values after a secret's name, and *known* values."""
    text = _without(text, known_spans(text, known))
    return _without(text, _spans(text))


def mask_part(text: str, start: int, end: int) -> str:
    """Return the part of *text* from *start* to *end*, masked.

    The whole text is searched, because part of a secret would not be recognised.
    """
    return _without(text, _spans(text), start, end)


def mask_forms(text: str) -> str:
    """Return the text with secrets in a known format replaced by `***`."""
    return _without(text, _form_spans(text))


def mask_pointer(pointer: str, known: Iterable[str] = ()) -> str:
    """Return a JSON pointer with any secrets in its names masked."""
    return "/".join(map(mask, _without(pointer, known_spans(pointer, known)).split("/")))


def mask_url(url: str) -> str:
    """Return the URL without passwords, tokens, secret parameters or secrets in a known format."""
    return _without(url, chain(_form_spans(url), url_spans(url)))


def mask_command(words: Sequence[str]) -> list[str]:
    """Mask `--token=…`, the word after `--token`, `API_KEY=…` and URL secrets in *words*."""
    found: list[str] = []
    is_value = False
    for word in words:
        name = _OPTION.match(word)
        is_named = name is not None and is_secret_name(name[1].lstrip("-"))
        if is_value:
            found.append(MASK)
        elif name and is_named and name[2]:
            found.append(f"{name[1]}={MASK}")
        else:
            found.append(mask(mask_url(word)))
        is_value = is_named and word.startswith("-") and "=" not in word
    return found


class Masker:
    """Masks the secrets in one call's text.

    A value under a secret's name in one of the JSON *bodies* is also masked wherever else it
    appears, such as in a message about an argument or in text that repeats the data. *aliases*
    are additional secret names.
    """

    def __init__(self, *bodies: bytes, aliases: frozenset[str] = frozenset()) -> None:
        self._aliases = aliases
        found: dict[str, None] = {}
        for body in bodies:
            for value, is_secret in walk_values(decode_json_or_text(body), aliases):
                if is_secret and len(found) < _MAX_KNOWN:
                    found.update(dict.fromkeys(written_forms(str(value))))
        self._known = tuple(found)

    def json(self, body: bytes) -> Json:
        """Return the decoded JSON with its secrets masked; other bytes become a string."""
        return self._value(decode_json_or_text(body))

    def text(self, text: str) -> str:
        return mask(text, self._known)

    def pointer(self, pointer: str) -> str:
        return mask_pointer(pointer, self._known)

    def _value(self, value: Json) -> Json:
        match value:
            case str():
                return self.text(value)
            case list():
                return [self._value(each) for each in value]
            case dict():
                return {self.text(name): self._member(name, each) for name, each in value.items()}
        return value

    def _member(self, name: str, value: Json) -> Json:
        """Mask any value under a secret's name; null and booleans reveal nothing."""
        if value is None or isinstance(value, bool) or not is_secret_name(name, self._aliases):
            return self._value(value)
        return MASK


def _without(
    text: str, spans: Iterable[tuple[int, int]], start: int = 0, end: int | None = None
) -> str:
    """Return the text from *start* to *end* with `***` for each span; spans may overlap."""
    end = len(text) if end is None else end
    masked: list[str] = []
    done = start
    for first, last in sorted(spans):
        if last > done and first < end:
            if first >= done or not masked:
                masked += [text[done:first], MASK]
            done = last
    return "".join(masked) + text[done:end]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    yield from _form_spans(text)
    at = 0
    while named := _NAME.search(text, at):
        at = named.end("name")
        if is_secret_name(named["name"]):
            value = _VALUE.match(text, named.end())
            if value and not _is_message(named["sign"], value):
                at = value.end()
                yield value.span(value.lastgroup or 0)


def _form_spans(text: str) -> Iterator[tuple[int, int]]:
    return ((secret.start, secret.end) for secret in secrets_in(text))


def _is_message(sign: str, value: re.Match[str]) -> bool:
    """Return whether the text after the name is about the value, as in `password: expected int`."""
    is_words = ":" in sign and sign[-1].isspace() and value["bare"] is not None
    return is_words and _MESSAGE.match(value["bare"]) is not None
