"""One argument of a function, as its signature tells it."""

from typing import Any

import msgspec


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """An argument: its name, its resolved annotation and, if it has one, its default."""

    name: str
    annotation: Any
    # By a factory, because NODEFAULT itself would mean that this field has no default.
    default: Any = msgspec.field(default_factory=lambda: msgspec.NODEFAULT)
    description: str | None = None

    @property
    def required(self) -> bool:
        """Whether a call must give this argument."""
        return self.default is msgspec.NODEFAULT
