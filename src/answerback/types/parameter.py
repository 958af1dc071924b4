"""One argument of a function, as its signature tells it."""

from typing import Any

import msgspec


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """An argument: its name, its resolved annotation and, if it has one, its default."""

    name: str
    annotation: Any
    default: Any = msgspec.NODEFAULT
    description: str | None = None

    @property
    def required(self) -> bool:
        """Whether a call must give this argument."""
        return self.default is msgspec.NODEFAULT
