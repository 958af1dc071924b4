"""The clients that `packages.toml` lists."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Client(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package of others that calls the app or judges its OpenAPI document, or a page to run."""

    name: str
    driver: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    wires: tuple[str, ...] = ("stdio", "http")
    lacks: tuple[str, ...] = ()
    """The parts of an answer that the client does not show; `tool.part` for one tool only."""
    judge: bool = False
    """True if the driver makes other checks than the calls, and fails if something is wrong."""
    ours: bool = False
    """True if the driver imports Answerback."""

    def row(self, cells: dict[str, str]) -> str:
        """The line of the table that is printed, and that docs/reference/clients.md has."""
        lacks = ", ".join(self.lacks) or "-"
        return f"| {self.name} | {cells.get('stdio', '-')} | {cells.get('http', '-')} | {lacks} |\n"


def read_clients() -> list[Client]:
    text = Path(__file__).with_name("packages.toml").read_text()
    return msgspec.toml.decode(text, type=dict[str, list[Client]])["client"]
