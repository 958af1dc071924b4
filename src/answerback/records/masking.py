"""Masks secrets in the names, arguments, replies and findings that are recorded.

It needs the package `rules`, which takes long to load, so it is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..rules import Finding
from ..rules.detectors.named_secrets import mask_pointer, mask_text, mask_values, searchable
from ..rules.detectors.secrets import MASK
from ..types.lenient import container_in
from ..types.secret_names import is_secret_name
from .call_record import MAX_KEPT_BYTES
from .event import Issue

if TYPE_CHECKING:
    from ..core.json_value import Json


_MAX_VALUES = 100
_OPENING = frozenset("[{")


class Masker:
    """Masks what belongs to one call.

    A value under the name of a secret, in the arguments or in the reply, is masked wherever else
    it appears: in a message about an argument, or in the text that repeats the data.
    """

    def __init__(self, *bodies: bytes, aliases: frozenset[str] = frozenset()) -> None:
        found: dict[str, None] = {}
        # Names of secrets that do not look like ones.
        self._aliases = aliases
        for value in (_decode(body) for body in bodies if len(body) <= MAX_KEPT_BYTES):
            for secret in self._named_values(value):
                if len(found) < _MAX_VALUES:
                    found.update(dict.fromkeys(searchable(secret)))
        # A value that is part of another must not be masked before it.
        self._values = tuple(sorted(found, key=len, reverse=True))

    def json(self, body: bytes) -> bytes:
        """Return JSON with its secrets masked; bytes that are not JSON become a JSON string."""
        return msgspec.json.encode(self._value(_decode(body)))

    def text(self, text: str) -> str:
        return mask_text(mask_values(text, self._values))

    def issues(self, findings: Sequence[Finding]) -> tuple[Issue, ...]:
        return tuple(
            Issue(each.rule, each.name, each.severity, self._pointer(each), self.text(each.message))
            for each in findings
        )

    def _pointer(self, finding: Finding) -> str:
        return mask_pointer(mask_values(finding.pointer, self._values))

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
        """Mask any value under the name of a secret; null and booleans reveal nothing."""
        if value is None or isinstance(value, bool) or not self._is_secret(name):
            return self._value(value)
        return MASK

    def _is_secret(self, name: str) -> bool:
        return name in self._aliases or is_secret_name(name)

    def _named_values(self, value: Json) -> Iterator[str]:
        """Yield the texts and numbers under the names of secrets, also in JSON within strings."""
        # A stack instead of recursion, because JSON in a string may begin a new depth.
        waiting: list[tuple[Any, bool]] = [(value, False)]
        while waiting:
            value, is_secret = waiting.pop()
            match value:
                case dict():
                    pairs = reversed(value.items())
                    waiting += [(each, is_secret or self._is_secret(name)) for name, each in pairs]
                case list():
                    waiting += [(each, is_secret) for each in reversed(value)]
                case bool() | None:
                    continue
                case str() | int() | float():
                    if is_secret:
                        yield str(value)
                    if isinstance(value, str) and value.lstrip()[:1] in _OPENING:
                        waiting.append((container_in(value), is_secret))


def masked_name(name: str) -> str:
    """Return the name of a tool or the address of a resource, as the client sent it, masked."""
    return mask_text(name)


def _decode(body: bytes) -> Json:
    try:
        return msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
