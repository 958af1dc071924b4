"""Proves that records are as they were written, or says where they first are not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .chain import link
from .event import ENDED, STARTED
from .reader import Kept, Torn, decode, read


class Head(msgspec.Struct):
    """How far a chain goes."""

    chain: str
    records: int
    hash: str
    ended: bool = False
    """Its process said that this was all; else it runs, was killed, or its tail was cut."""


class Verdict(msgspec.Struct):
    records: int = 0
    heads: list[Head] = []
    torn: list[int] = []
    """Lines that a process was stopped in the middle of."""
    broken: str = ""
    """The first link that does not hold, or the tail that was cut; empty if all is well."""

    @property
    def holds(self) -> bool:
        return not self.broken


def verify(path: str, heads: Sequence[str] = ()) -> Verdict:
    """Follow every chain; each of *heads*, noted down earlier, must still be there."""
    # Once for what was there when a chain began, and once for whether it still is.
    missing = {kept: f"chain {chain} began after it" for kept, chain in _befores(path)}
    missing |= dict.fromkeys(heads, "it was to be there")
    verdict = Verdict()
    chains: dict[str, Head] = {}
    for kept in read(path):
        if isinstance(kept, Torn):
            verdict.torn.append(kept.place)
            continue
        verdict.records += 1
        verdict.broken = verdict.broken or _check(kept, chains)
        missing.pop(kept.hash, None)
    verdict.heads = list(chains.values())
    if missing and not verdict.broken:
        lost, why = next(iter(missing.items()))
        verdict.broken = f"a tail was cut: the record with the hash {lost} is gone, and {why}"
    return verdict


def _befores(path: str) -> Iterable[tuple[str, str]]:
    for kept in read(path):
        if isinstance(kept, Kept) and kept.seq == 1:
            event = decode(kept)
            if event is not None and event.after:
                yield event.after, kept.chain


def _check(kept: Kept, chains: dict[str, Head]) -> str:
    """What is wrong with the record; if nothing is, it is the head of its chain."""
    head = chains.setdefault(kept.chain, Head(kept.chain, 0, ""))
    where = f"record {kept.place}, number {kept.seq} of chain {kept.chain}"
    event = decode(kept)
    if head.ended:
        return f"{where}: it comes after the end of its chain"
    if kept.seq != head.records + 1:
        return f"{where}: number {head.records + 1} should be here"
    if link(head.hash, kept.body) != kept.hash:
        return f"{where}: it was changed, for its hash is not that of its contents"
    if event is None:
        return f"{where}: it is no event"
    if (event.event == STARTED) != (kept.seq == 1):
        return f"{where}: a chain begins with {STARTED}, and nowhere else"
    head.records, head.hash, head.ended = kept.seq, kept.hash, event.event == ENDED
    return ""
