"""Masks secrets: `mask` for texts, `mask_url` and `mask_command` for servers, `Masker` for calls.

A secret is recognised by its form, by its name, or because it stood under a secret's name
elsewhere. Names also mask what merely resembles a secret, so `lint --fix` uses only forms
(`mask_forms`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from ..json_value import Json
from .http_secrets import url_spans
from .secret_forms import secrets_in
from .secret_names import is_secret_name
from .secret_values import decode_json_or_text, known_spans, walk_values, written_forms

MASK = "***"
_MAX_KNOWN = 100
_NAME = re.compile(
    r"""(?<![\w-])(?P<name>[A-Za-z][\w.-]{1,60})(?:\\?["']\]?){0,2}
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
# An option of a command, or a variable with its value.
_OPTION = re.compile(r"([\w.-]+)(?:(=)|\Z)")


def mask(text: str, known: Iterable[str] = ()) -> str:
    """Return the text with `***` for secrets, values beside a secret's name, and *known* values."""
    text = _without(text, known_spans(text, known))
    return _without(text, _spans(text))


def mask_part(text: str, start: int, end: int) -> str:
    """Return the part of *text* from *start* to *end*, masked.

    The whole text is searched, because part of a secret would not be recognised.
    """
    return _without(text, _spans(text), start, end)


def mask_forms(text: str) -> str:
    """Return the text with `***` for secrets that their form reveals."""
    return _without(text, _form_spans(text))


def mask_pointer(pointer: str, known: Iterable[str] = ()) -> str:
    """Return a JSON pointer with the secrets among its names masked."""
    return "/".join(map(mask, _without(pointer, known_spans(pointer, known)).split("/")))


def mask_url(url: str) -> str:
    """Return the URL without password or token, secret parameters, and secrets of a known form."""
    return _without(url, chain(_form_spans(url), url_spans(url)))


def mask_command(words: Sequence[str]) -> list[str]:
    """Return *words* without `--token=…`, the word after `--token`, `API_KEY=…`, URL secrets."""
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
    """A masker for the texts of one call.

    A value under a secret's name, in one of the JSON *bodies*, is masked wherever else it
    appears: in a message about an argument, or in the text that repeats the data. *aliases* are
    further secret names.
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
        """Return the value of JSON with its secrets masked; other bytes become a string."""
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
    kept: list[str] = []
    done = start
    for first, last in sorted(spans):
        if last > done and first < end:
            if first >= done or not kept:
                kept += [text[done:first], MASK]
            done = last
    return "".join(kept) + text[done:end]


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each secret, and of each value beside a secret's name."""
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
