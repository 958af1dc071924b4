"""Checks an author's `_meta`: misspelt keys, misplaced keys and wrong values.

Keys that no host defines pass. So do a host's keys that are not in the table, because the host may
have added them since; a key that resembles one in the table causes a warning.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NoReturn

from ..suggestions import did_you_mean
from .key_table import KEYS, Place, ValueKind

_PREFIXES = ("openai/", "mcp/", "ui/")
_NAMES = frozenset(key.name for key in KEYS)
_BY_PLACE = {(key.name, place): key for key in KEYS for place in key.places}
_NOUNS: dict[Place, str] = {
    "tool": "a tool",
    "result": "a result",
    "resource": "a resource",
    "content": "the content of a resource",
    "block": "a content block",
    "request": "a request",
}
_GIVEN_BY: dict[Place, str] = {
    "tool": "@app.tool(meta=…)",
    "result": "success(meta=…) or failure(meta=…)",
    "content": "app.widget(…) or app.resource(uri, content_meta=…)",
}
"""How an author gives a key at its first place."""

_SENT_BY_CLIENTS = "clients send it, and ctx.request.hints has it"


def _warn(message: str) -> None:
    """Warn at the author's own line, which is the nearest one outside this package."""
    import warnings

    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def check_meta(
    meta: object,
    place: Place,
    argument: str = "meta",
    *,
    misspelt: Callable[[str], None] = _warn,
) -> None:
    """Raise TypeError or ValueError if a host's key is misplaced or wrong.

    *argument* is the name of the author's parameter. A value that is not a dict is not checked
    here: it is refused with the whole reply, or with the tool's options. *misspelt* receives the
    message about a key that is probably misspelt.
    """
    if not isinstance(meta, dict):
        return
    for name, value in meta.items():
        if name in _NAMES or (isinstance(name, str) and name.lower().startswith(_PREFIXES)):
            key = _BY_PLACE.get((name, place))
            if key is not None:
                _check_value(value, key.kind, f"{argument}[{name!r}]")
            elif name in _NAMES:
                _refuse_key(name, place)
            elif (near := _near_key(name)) is not None:
                misspelt(f"no known metadata key is named {name!r}; {did_you_mean([near])}")


def _refuse_key(name: str, place: Place) -> None:
    first = next(key.places[0] for key in KEYS if key.name == name)
    right = f"give it by {_GIVEN_BY[first]}" if first in _GIVEN_BY else _SENT_BY_CLIENTS
    raise ValueError(f"{name!r} does not belong on {_NOUNS[place]}; {right}")


def _check_value(value: Any, kind: ValueKind, path: str) -> None:
    if not kind.is_valid(value):
        _refuse_value(value, kind.expected, path)
    if not kind.members:
        return
    for name, member in value.items():
        if name in kind.members:
            _check_value(member, kind.members[name], f"{path}[{name!r}]")
        else:
            _refuse_member(name, kind, path)


def _refuse_member(name: Any, kind: ValueKind, path: str) -> None:
    if name in kind.elsewhere:
        raise ValueError(f"{path} has {name!r}, which belongs on {kind.elsewhere[name]}")
    near = _near(str(name), kind.members)
    if near is not None:
        raise ValueError(f"{path} has no member {name!r}; {did_you_mean([near])}")


def _refuse_value(value: object, expected: str, path: str) -> NoReturn:
    shown = repr(value)
    shown = shown if len(shown) <= 100 else f"{shown[:97]}..."
    raise TypeError(f"{path} should be {expected}, not {shown}")


@lru_cache(256)
def _near_key(name: str) -> str | None:
    """Call `_near` and cache the result: a reply may have a new host key in every call."""
    return _near(name, sorted(_NAMES))


def _near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that *name* is probably a misspelling of."""
    wanted = _plain(name)
    likeness, near = max((_likeness(wanted, _plain(each)), each) for each in known)
    return near if likeness >= 0.8 else None


def _likeness(one: str, other: str) -> float:
    """Return how similar two names are, from 0 to 1; each part between slashes must be similar.

    Names with different prefixes are not similar: they belong to different hosts.
    """
    parts, others = one.split("/"), other.split("/")
    if len(parts) > 1 and parts[0] != others[0]:
        return 0.0
    if parts[-1] == others[-1]:
        return 1.0
    if len(parts) != len(others):
        return 0.0
    from difflib import SequenceMatcher

    pairs = zip(parts, others, strict=True)
    return min(SequenceMatcher(None, part, each).ratio() for part, each in pairs)


def _plain(name: str) -> str:
    """Return the name without capitals and separators: hosts use both styles."""
    return name.lower().replace("_", "").replace("-", "")
