"""Notes in a reply about the parts that were left out, and how a client gets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..core.content import Block, Link, Text
from ..core.reply import Cut
from .ranges import ReplyPart
from .wholes import range_uri

_SHOWN = 5
"""How many cuts a note describes one by one."""


class Said(NamedTuple):
    """A cut, and where the whole is."""

    cut: Cut
    uri: str | None
    """The URI of the whole; None if it is not kept."""
    path: str
    """Where the list or the text is in the whole."""
    name: str
    """What the reader knows it as; empty if the reply is nothing else."""
    before: int | None = None
    """For the items of a page, how many are on earlier pages; its `next` continues."""
    in_all: int | None = None
    """For the items of a page, how many there are on all pages; None if that is not known."""


def notes(said: Sequence[Said]) -> tuple[Block, ...]:
    """Return a text that names each cut, and a link to each whole."""
    if not said:
        return ()
    lines = [_line(each) for each in said[:_SHOWN]]
    if more := len(said[_SHOWN:]):
        lines.append(f"Lists and texts that were cut too: {more:,}.")
    uris = dict.fromkeys(each.uri for each in said)
    return Text("\n".join(lines)), *(link(uri) for uri in uris if uri is not None)


def _line(said: Said) -> str:
    cut = said.cut
    if said.before is not None:
        return f"{_items(cut, said.before, said.in_all)} {way_on(said)}"
    where = f' of "{said.name}"' if said.name else ""
    return f"Showing {cut.returned:,} of {cut.total:,} {cut.unit}{where}. {way_on(said)}"


def _items(cut: Cut, before: int, in_all: int | None) -> str:
    if in_all == cut.total:
        return f"Showing items {before + 1:,} to {before + cut.returned:,} of {in_all:,}."
    # The list is one of the tool's own pages, and what comes before it is not known here.
    of = "" if in_all is None else f" of {in_all:,}"
    return f"Showing {cut.returned:,}{of} items."


def way_on(said: Said) -> str:
    """Return the sentence that says how to get what follows a cut."""
    if said.uri is None:
        return "The rest was not kept: ask for less."
    if said.before is not None:
        return "For the next items, repeat the call with this page's next as cursor."
    cut = said.cut
    rest = ReplyPart(
        path=said.path,
        offset=cut.returned,
        limit=cut.returned,
        unit="lines" if cut.unit == "lines" else "characters",
    )
    return f"The rest: {range_uri(said.uri, rest)}"


def link(uri: str) -> Link:
    """Return the link to a whole."""
    return Link(uri, "the whole reply", mime="application/json")
