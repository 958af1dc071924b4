"""`audit`: what was answered, and whether the records of it are whole."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence

import msgspec

from ..dialects.readable import render
from ..records.event import Event
from ..records.reader import StoredRecord, decode, read
from ..records.statistics import Summary, ToolStatistics, summarise
from ..records.verify import Verdict, verify
from .program import Program, tell

SUMMARY = "show what was answered, and prove that the records of it are whole"

_BAR = 20
_BLOCKS = " ▏▎▍▌▋▊▉█"
_SHOWN_HEADS = 20


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = ArgumentParser(prog=f"{program.name} audit", description=SUMMARY, allow_abbrev=False)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="verify|tail|stats")
    for name, (summary, _) in _WHAT.items():
        kind = kinds.add_parser(name, help=summary, description=summary)
        kind.add_argument("file", nargs="?", default="audit.db", metavar="FILE")
        kind.add_argument("--json", action="store_true", help="for programs")
        if name == "verify":
            kind.add_argument(
                "--head",
                action="append",
                default=[],
                type=_hash,
                metavar="HASH",
                help="a head noted down earlier, which must be there",
            )
        if name == "tail":
            kind.add_argument("-n", type=_count, default=20, metavar="N", help="(default: 20)")
    given = parser.parse_args(arguments)
    return _WHAT[given.what][1](given)


def _hash(text: str) -> str:
    """A shortened one would be missed, and taken for a sign of tampering."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ArgumentTypeError("a whole hash has 64 hexadecimal digits, as verify shows them")
    return text


def _verify(given: Namespace) -> int:
    verdict = verify(given.file, given.head)
    if given.json:
        _say(msgspec.json.encode({"holds": verdict.holds, **msgspec.to_builtins(verdict)}).decode())
    else:
        _say(_told(verdict))
    return 0 if verdict.holds else 1


def _told(verdict: Verdict) -> str:
    if not verdict.records and verdict.holds:
        return "nothing was recorded yet"
    running = sum(not head.ended for head in verdict.heads)
    lines = [f"{_counted(verdict.records, 'record')} in {_counted(len(verdict.heads), 'chain')}"]
    lines += [f"  {_head(head.chain, head.hash)}" for head in verdict.heads[-_SHOWN_HEADS:]]
    if running:
        lines.append(f"{running} of them without an end: running, killed, or cut; see --head")
    if verdict.torn:
        lines.append(f"cut short while written: line {', '.join(map(str, verdict.torn))}")
    lines.append(f"BROKEN: {render(verdict.broken)}" if verdict.broken else "all links hold")
    return "\n".join(lines)


def _head(chain: str, hashed: str) -> str:
    return f"{render(chain)}  head {hashed}"


def _tail(given: Namespace) -> int:
    for event, kept in _events(given.file, given.n):
        _say(kept.body.decode("utf-8", "replace") if given.json else _line(event))
    return 0


def _line(event: Event) -> str:
    when = event.time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if not event.is_reply:
        more = f", {event.lost} lost: {event.why}" if event.lost else f", process {event.process}"
        return render(f"{when}  {event.event}{more}")
    name = event.tool if event.kind == "tool" else f"{event.kind} {event.tool}"
    words = [when, f"{event.wire:6}", f"{_ms(event.duration_us / 1000):>9}", name]
    words += [event.code or "ok", event.reference, event.caller]
    words += [f"{issue.rule} {issue.message}" for issue in event.findings]
    return render("  ".join(word for word in words if word).replace("\n", " "))


def _stats(given: Namespace) -> int:
    summary = summarise(event for event, _ in _events(given.file, None))
    _say(msgspec.json.encode(summary).decode() if given.json else _table(summary))
    return 0


def _table(summary: Summary) -> str:
    if not summary.tools:
        return "nothing was answered yet" + _missing(summary)
    heads = ("tool", "calls", "failures", "findings", "p50", "p95", "p99")
    rows = [heads, *map(_cells, summary.tools)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    most = summary.tools[0].calls
    bars = ["", *(_bar(row.calls / most) for row in summary.tools)]
    lines = [
        f"{'  '.join(_padded(row, widths))}  {bar}".rstrip()
        for row, bar in zip(rows, bars, strict=True)
    ]
    total = f"{_counted(summary.calls, 'call')}, {_counted(summary.failures, 'failure')}"
    return "\n".join([*lines, "", total + _missing(summary)])


def _cells(row: ToolStatistics) -> tuple[str, ...]:
    counts = map(str, (row.calls, row.failures, row.findings))
    return (render(row.tool)[:60], *counts, *map(_ms, (row.p50, row.p95, row.p99)))


def _padded(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
        yield f"{cell:>{width}}" if column else f"{cell:{width}}"


def _bar(share: float) -> str:
    eighths = max(round(share * _BAR * 8), 1)
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _missing(summary: Summary) -> str:
    """What is not in the table."""
    lost = f"; {_counted(summary.lost, 'record')} lost" if summary.lost else ""
    return lost + (f"; {summary.unchecked} not checked" if summary.unchecked else "")


def _ms(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _events(path: str, last: int | None) -> Iterator[tuple[Event, StoredRecord]]:
    unread = 0
    for kept in read(path, last=last):
        event = decode(kept) if isinstance(kept, StoredRecord) else None
        if isinstance(kept, StoredRecord) and event is not None:
            yield event, kept
        else:
            unread += 1
    if unread:
        tell(f"{_counted(unread, 'record')} could not be read; see `audit verify`")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


_WHAT = {
    "verify": ("prove that the records are as they were written", _verify),
    "tail": ("show the latest", _tail),
    "stats": ("calls, failures and how long they took, by tool", _stats),
}
