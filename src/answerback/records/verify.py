"""Verifies a file's hash chains: finds the first record that was changed, removed or added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .event import ENDED, STARTED
from .hash_chain import chain_hash
from .reader import StoredRecord, TornLine, decode, read


class Head(msgspec.Struct):
    """A chain's last valid record."""

    chain: str
    records: int
    hash: str
    ended: bool = False
    """True if the chain has its end record; if not, the process still runs, was killed, or the end
    of the chain was cut off."""
    began: str = ""
    """Why the process began this chain after another one, if it says so."""


class Verdict(msgspec.Struct):
    """The result of `verify`."""

    records: int = 0
    heads: list[Head] = []
    torn: list[int] = []
    """The numbers of the lines whose process was killed while writing them."""
    broken: str = ""
    """The first record that does not fit its chain, or the missing tail; empty if all is valid."""

    @property
    def holds(self) -> bool:
        return not self.broken


def verify(path: str, heads: Sequence[str] = ()) -> Verdict:
    """Follow every chain; the records with the hashes *heads*, noted earlier, must still exist."""
    # The file is read twice: first for the hashes that must exist, then to find them.
    missing = {required: f"chain {chain} began after it" for required, chain in _required(path)}
    missing |= dict.fromkeys(heads, "it was given as a head")
    verdict = Verdict()
    chains: dict[str, Head] = {}
    cut: dict[str, int] = {}
    for record in read(path):
        if isinstance(record, TornLine):
            if record.chain is None:
                verdict.broken = verdict.broken or f"not a record: line {record.number}"
            else:
                verdict.torn.append(record.number)
                cut[record.chain] = record.number
            continue
        verdict.records += 1
        verdict.broken = verdict.broken or _check(record, chains)
        if not verdict.broken and record.chain in cut:
            # A killed process leaves a line cut off, and writes no more.
            verdict.broken = f"not a record: line {cut[record.chain]}; its chain goes on after it"
        missing.pop(record.hash, None)
    verdict.heads = list(chains.values())
    if missing and not verdict.broken:
        lost, why = next(iter(missing.items()))
        verdict.broken = f"a tail was cut: the record with the hash {lost} is missing, but {why}"
    return verdict


def _required(path: str) -> Iterable[tuple[str, str]]:
    """Yield the hash that each chain's first record names as the newest one before it."""
    for record in read(path):
        if isinstance(record, StoredRecord) and record.seq == 1:
            event = decode(record)
            if event is not None and event.after:
                yield event.after, record.chain


def _check(record: StoredRecord, chains: dict[str, Head]) -> str:
    """Return the record's problem; a record without one becomes its chain's head."""
    head = chains.setdefault(record.chain, Head(record.chain, 0, ""))
    where = f"record {record.number}, number {record.seq} of chain {record.chain}"
    event = decode(record)
    if head.ended:
        return f"{where}: it comes after the end of its chain"
    if record.seq != head.records + 1:
        return f"{where}: number {head.records + 1} should be here"
    if chain_hash(head.hash, record.body) != record.hash:
        return f"{where}: it was changed: its hash does not match its content"
    if record.altered:
        return f"{where}: its line is not as it was written: it has other members or spaces"
    if event is None:
        return f"{where}: it is not an event"
    if (event.event == STARTED) != (record.seq == 1):
        return f"{where}: the first record of a chain, and no other, must be {STARTED}"
    head.records, head.hash, head.ended = record.seq, record.hash, event.event == ENDED
    head.began = event.why if record.seq == 1 else head.began
    return ""
