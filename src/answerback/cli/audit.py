"""`audit`: verifies the hash chains of the records, and shows events and statistics."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence

import msgspec

from ..dialects.readable import render
from ..records.event import Event
from ..records.hash_chain import Head, Verdict, verify
from ..records.reader import StoredRecord, Summary, ToolStatistics, decode, read, summarise
from ..types.problems import counted
from .argument_parser import subcommand_parsers
from .program import Program, aligned, positive_int, print_json, print_line, write_stderr

_BAR_WIDTH = 20
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MAX_HEADS = 20
_NOT_PROVEN = (
    "not proven without --head: that no end was cut off, and that the file was not rewritten as a "
    "whole; note a head above in another place, and give it next time"
)


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _parser(program).parse_args(arguments)
    return _SUBCOMMANDS[options.subcommand][1](options)


def _parser(program: Program) -> ArgumentParser:
    parser, subparsers = subcommand_parsers(program, "audit", _SUBCOMMANDS)
    for each in subparsers.values():
        text = "the file of `serve --audit` (default: %(default)s)"
        each.add_argument("file", nargs="?", default="audit.db", metavar="FILE", help=text)
        each.add_argument("--json", action="store_true", help="print JSON, for programs")
    text = "a hash noted down earlier, whose record must still be there; may be repeated"
    subparsers["verify"].add_argument(
        "--head", action="append", default=[], type=_full_hash, metavar="HASH", help=text
    )
    text = "how many events (default: %(default)s)"
    subparsers["tail"].add_argument("-n", type=positive_int, default=20, metavar="N", help=text)
    return parser


def _full_hash(text: str) -> str:
    """Refuse a shortened hash: it would match no record and look like tampering."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ArgumentTypeError("a hash has 64 hexadecimal digits, as verify prints it")
    return text


def _verify(options: Namespace) -> int:
    verdict = verify(options.file, options.head)
    if options.json:
        proof = {"holds": verdict.holds, "head_given": bool(options.head)}
        members = {**proof, **msgspec.to_builtins(verdict)}
        print_json(msgspec.json.encode(members))
    else:
        print_line(_verdict_text(verdict, head_given=bool(options.head)))
    return 0 if verdict.holds else 1


def _verdict_text(verdict: Verdict, *, head_given: bool) -> str:
    if not verdict.records and verdict.holds:
        return "nothing was recorded yet"
    unfinished = sum(not head.ended for head in verdict.heads)
    lines = [f"{counted(verdict.records, 'record')} in {counted(len(verdict.heads), 'chain')}"]
    lines += map(_head_line, verdict.heads[-_MAX_HEADS:])
    if unfinished:
        reasons = "the process runs, was killed, or the end was cut off"
        chains = counted(unfinished, "chain")
        lines.append(f"{chains} without an end record: {reasons}; see --head")
    if verdict.torn:
        numbers = ", ".join(map(str, verdict.torn))
        lines.append(f"cut off while it was written: line {numbers}")
    lines.append(f"BROKEN: {render(verdict.broken)}" if verdict.broken else "all links hold")
    if verdict.holds and not head_given:
        lines.append(_NOT_PROVEN)
    return "\n".join(lines)


def _head_line(head: Head) -> str:
    began = f"  (began because {render(head.began)})" if head.began else ""
    return f"  {render(head.chain)}  head {head.hash}{began}"


def _tail(options: Namespace) -> int:
    for event, kept in _events(options.file, options.n):
        if options.json:
            print_json(kept.body)
        else:
            print_line(_event_line(event))
    return 0


def _event_line(event: Event) -> str:
    when = event.time.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    if not event.is_reply:
        more = f", {event.lost} lost: {event.why}" if event.lost else f", process {event.process}"
        return render(f"{when}  {event.event}{more}")
    name = event.tool if event.kind == "tool" else f"{event.kind} {event.tool}"
    words = [when, f"{event.wire:6}", f"{_duration(event.duration_us / 1000):>9}", name]
    words += [event.code or "ok", event.reference, event.caller]
    words += [f"{issue.rule} {issue.message}" for issue in event.findings]
    return render("  ".join(word for word in words if word).replace("\n", " "))


def _stats(options: Namespace) -> int:
    summary = summarise(event for event, _ in _events(options.file, None))
    if options.json:
        print_json(msgspec.json.encode(summary))
    else:
        print_line(_table(summary))
    return 0


def _table(summary: Summary) -> str:
    if not summary.tools:
        return "nothing was answered yet" + _lost_and_unchecked(summary)
    header = ("tool", "calls", "failures", "findings", "p50", "p95", "p99")
    rows = aligned([header, *map(_cells, summary.tools)], numbers=True)
    most = summary.tools[0].calls
    bars = ["", *(_bar(row.calls / most) for row in summary.tools)]
    lines = [f"{row}  {bar}".rstrip() for row, bar in zip(rows, bars, strict=True)]
    total = f"{counted(summary.calls, 'call')}, {counted(summary.failures, 'failure')}"
    return "\n".join([*lines, "", total + _lost_and_unchecked(summary)])


def _cells(row: ToolStatistics) -> tuple[str, ...]:
    counts = map(str, (row.calls, row.failures, row.findings))
    return (render(row.tool)[:60], *counts, *map(_duration, (row.p50, row.p95, row.p99)))


def _bar(share: float) -> str:
    eighths = max(round(share * _BAR_WIDTH * 8), 1)
    return _BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _lost_and_unchecked(summary: Summary) -> str:
    lost = f"; {counted(summary.lost, 'record')} lost" if summary.lost else ""
    return lost + (f"; {summary.unchecked} not checked" if summary.unchecked else "")


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _events(path: str, last: int | None) -> Iterator[tuple[Event, StoredRecord]]:
    unreadable = 0
    for kept in read(path, last=last):
        event = decode(kept) if isinstance(kept, StoredRecord) else None
        if isinstance(kept, StoredRecord) and event is not None:
            yield event, kept
        else:
            unreadable += 1
    if unreadable:
        write_stderr(f"{counted(unreadable, 'record')} could not be read; see `audit verify`")


_SUBCOMMANDS = {
    "verify": ("verify that the records are as they were written", _verify),
    "tail": ("show the latest events", _tail),
    "stats": ("show calls, failures and durations of each tool", _stats),
}
