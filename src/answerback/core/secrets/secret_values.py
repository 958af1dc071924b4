"""Finds the values under secret names in JSON, and searches for them in other texts."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Iterator
from itertools import repeat

import msgspec

from ..json_value import Json
from .secret_names import is_secret_name, is_secret_path

_MAX_VALUES = 2_000
# A shorter text is part of many others, and masking it would make them unreadable.
_MIN_LENGTH = 4
# This much of a value is recognised even if the rest was cut off.
_START_LENGTH = 16


def walk_values(
    value: Json, aliases: frozenset[str] = frozenset(), is_secret: bool = False
) -> Iterator[tuple[Json, bool]]:
    """Yield *value* and each value in it, and whether it is a secret because of a name above it.

    JSON within strings is read too. Containers, null and booleans are not secrets.
    """
    # A stack instead of recursion, because JSON in a string may begin a new depth. It has
    # iterators, so that a caller who stops early does not pay for the rest.
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

    *path* leads to *sent*. True also if *sent* has too many values to check each.
    """
    values = walk_values(sent, aliases, is_secret_path(path, aliases))
    for count, (value, is_secret) in enumerate(values):
        if count == _MAX_VALUES:
            return True
        # Many Python texts quote a value by its `repr`.
        secret = str(value) if is_secret else ""
        if secret and (secret in text or repr(secret)[1:-1] in text):
            return True
    return False


def written_forms(value: str) -> tuple[str, ...]:
    """Return a secret value unchanged and as Python and JSON write it; empty if it is too short."""
    if len(value) < _MIN_LENGTH:
        return ()
    in_json = value.replace("\\", "\\\\").replace('"', '\\"')
    in_python = (repr(value)[1:-1], value.encode("unicode_escape").decode())
    return tuple(dict.fromkeys((value, *in_python, in_json, in_json.replace("/", "\\/"))))


def known_spans(text: str, known: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each occurrence of one of *known* in the text, even cut off."""
    for value in known:
        first = value[:_START_LENGTH]
        start = text.find(first)
        while start >= 0:
            found = (text[start : start + len(value)], value)
            end = start + len(os.path.commonprefix(found))  # noqa: RUF071 -- by characters
            yield start, end
            start = text.find(first, end)
