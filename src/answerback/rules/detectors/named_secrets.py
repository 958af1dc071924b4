"""Masks the values that stand beside the name of a secret in a text, as in `password=…`.

`secrets` recognises a secret by its own form; this module goes by its name. Only records and the
messages of findings are masked this way: it also masks what only looks like a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...types.secret_names import is_secret_name
from .secrets import MASK, secrets_in

_NAME = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z][\w.-]{1,60})(?:\\?["']){0,2}
    (?P<sign>\s{0,3}(?:=>|:=|[=:])\s{0,3}|\s{1,3}(?=\\?["']))
    """,
    re.VERBOSE,
)
# A quoted value ends at its closing quote, which may be escaped because the text is JSON in JSON.
_VALUE = re.compile(
    r"""(?:(?:Bearer|Basic|Token)\s+)?
    (?:\\"(?P<escaped>(?:[^"\\]|\\[^"])+)|"(?P<double>(?:[^"\\]|\\.)+)|'(?P<single>(?:[^'\\]|\\.)+)
    |(?P<bare>[^\s,;&"'<>(){}\[\]\\]+))
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# The first words of a message about a value, after its name and a colon.
_MESSAGE = re.compile(
    r"(?:expected|missing|required|unknown|refused|must|should|invalid|wrong|incorrect|not|is|was"
    r"|no|too|number|value|field|input|string|the|an?|does|cannot|please|nested|got|null|true|false"
    r"|none)\b",
    re.IGNORECASE,
)
# A shorter text is part of many others, and masking it would make them unreadable.
_MIN_LENGTH = 4
# So much of a value is recognised even if the rest was cut off.
_START_LENGTH = 16


def mask_text(text: str) -> str:
    """The text with every secret and every value beside the name of a secret masked."""
    return masked_part(text, 0, len(text))


def mask_pointer(pointer: str) -> str:
    """A JSON pointer with secrets masked among its names."""
    return "/".join(map(mask_text, pointer.split("/")))


def masked_part(text: str, start: int, end: int) -> str:
    """The part of *text* from *start* to *end*, masked.

    A secret is looked for in the whole text, because a part of one would not be recognised.
    """
    kept: list[str] = []
    done = start
    for first, last in sorted(_spans(text)):
        if last > done and first < end:
            if first >= done or not kept:
                kept += [text[done:first], MASK]
            done = last
    return "".join(kept) + text[done:end]


def mask_values(text: str, values: tuple[str, ...]) -> str:
    """The text without *values*, which were found to be secret elsewhere."""
    for value in values:
        start = text.find(value[:_START_LENGTH])
        while start >= 0:
            end = start + _common_length(text[start : start + len(value)], value)
            text = text[:start] + MASK + text[end:]
            start = text.find(value[:_START_LENGTH], start + len(MASK))
    return text


def _common_length(text: str, value: str) -> int:
    """How many characters at the beginning of both are equal."""
    pairs = enumerate(zip(text, value, strict=False))
    return next((index for index, (one, other) in pairs if one != other), len(text))


def searchable(value: str) -> tuple[str, ...]:
    """A secret value and its escaped forms, for `mask_values`; none if it is too short."""
    if len(value) < _MIN_LENGTH:
        return ()
    escaped = (repr(value)[1:-1], value.encode("unicode_escape").decode())
    return tuple(dict.fromkeys((value, *escaped)))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for secret in secrets_in(text):
        yield secret.start, secret.end
    at = 0
    while named := _NAME.search(text, at):
        at = named.end("name")
        if is_secret_name(named["name"]):
            value = _VALUE.match(text, named.end())
            if value and not _is_message(named["sign"], value):
                at = value.end()
                yield value.span(value.lastgroup or 0)


def _is_message(sign: str, value: re.Match[str]) -> bool:
    """Whether the text after the name is about the value, as in `password: expected int`."""
    is_words = ":" in sign and sign[-1].isspace() and value["bare"] is not None
    return is_words and _MESSAGE.match(value["bare"]) is not None
