"""Recognises secret names, such as `password` and `api_key`, even if misspelt."""

from __future__ import annotations

import re
from collections.abc import Iterable

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
# Names with one wrong, missing, additional or swapped letter count too. Shorter words are not in
# the list, because they are one letter away from ordinary names.
_WORDS = ("password", "passphrase", "passcode", "secret", "apikey", "privatekey", "credential")


def is_secret_name(name: str, aliases: frozenset[str] = frozenset()) -> bool:
    """Return whether a member with this name probably holds a secret, or is one of *aliases*."""
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
    """Return whether one of the names on a path such as `login.keys[0]` is a secret's name."""
    quoted = _BRACKETS.split(path)
    # A dot separates two names, or belongs to a name in quotes.
    names = {*quoted, *(name for each in quoted for name in each.split("."))}
    return any(is_secret_name(name, aliases) for name in names)


def has_secret_name(text: str) -> bool:
    """Return whether the text resembles a JSON array or object that contains a secret's name."""
    if not text.lstrip().startswith(("[", "{")):
        return False
    return any(map(is_secret_name, _NO_NAME.split(text)))


def aliases_of_secrets(values: Iterable[tuple[str, ...]]) -> frozenset[str]:
    """Return all names of the values that have a secret's name among theirs.

    Each of *values* holds one value's names, such as a parameter's name and its alias.
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
