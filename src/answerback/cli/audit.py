"""`audit`: verifies the records' hash chains, and shows events and statistics."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence

import msgspec

from ..dialects.readable import render
from ..records.event import Event
from ..records.hash_chain import Verdict, verify
from ..records.reader import StoredRecord, decode, read, summarise
from ..types.problems import counted
from .argument_parser import subcommand_parsers
from .program import Program, aligned, positive_int, print_json, print_line, write_stderr

_BAR_WIDTH = 20
_BLOCKS = " ▏▎▍▌▋▊▉█"
_MAX_HEADS = 20
_NOT_PROVEN = (
    "without --head, a truncated or completely rewritten file would go unnoticed; "
    "save one of the heads above elsewhere, and pass it next time"
)


def run(program: Program, arguments: Sequence[str]) -> int:
    parser, subparsers = subcommand_parsers(program, "audit", _SUBCOMMANDS)
    for each in subparsers.values():
        text = "the file written by `serve --audit` (default: %(default)s)"
        each.add_argument("file", nargs="?", default="audit.db", metavar="FILE", help=text)
        each.add_argument("--json", action="store_true", help="print JSON, for programs")
    text = "a hash you saved earlier, whose record must still exist; may be repeated"
    subparsers["verify"].add_argument(
        "--head", action="append", default=[], type=_full_hash, metavar="HASH", help=text
    )
    text = "how many events to show (default: %(default)s)"
    subparsers["tail"].add_argument("-n", type=positive_int, default=20, metavar="N", help=text)
    options = parser.parse_args(arguments)
    return _SUBCOMMANDS[options.subcommand][1](options)


def _full_hash(text: str) -> str:
    """Reject a shortened hash, which would match no record and look like tampering."""
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ArgumentTypeError("a hash has 64 hexadecimal digits, as printed by verify")
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
        return "nothing has been recorded yet"
    unfinished = sum(not head.ended for head in verdict.heads)
    lines = [f"{counted(verdict.records, 'record')} in {counted(len(verdict.heads), 'chain')}"]
    for head in verdict.heads[-_MAX_HEADS:]:
        began = f"  (began because {render(head.began)})" if head.began else ""
        lines.append(f"  {render(head.chain)}  head {head.hash}{began}")
    if unfinished:
        reasons = "the process is running, was killed, or the end was cut off"
        chains = counted(unfinished, "chain")
        lines.append(f"{chains} without an end record: {reasons}; see --head")
    if verdict.torn:
        numbers = ", ".join(map(str, verdict.torn))
        lines.append(f"cut off while being written: line {numbers}")
    lines.append(f"BROKEN: {render(verdict.broken)}" if verdict.broken else "all links are intact")
    if verdict.holds and not head_given:
        lines.append(_NOT_PROVEN)
    return "\n".join(lines)


def _tail(options: Namespace) -> int:
    for event, record in _events(options.file, options.n):
        if options.json:
            print_json(record.body)
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
        return 0
    missing = f"; {counted(summary.lost, 'record')} lost" if summary.lost else ""
    missing += f"; {summary.unchecked} not checked" if summary.unchecked else ""
    if not summary.tools:
        print_line(f"no calls have been answered yet{missing}")
        return 0
    rows: list[tuple[str, ...]] = [("tool", "calls", "failures", "findings", "p50", "p95", "p99")]
    bars = [""]
    # The tools are sorted by number of calls, so the first one has the longest bar.
    most = summary.tools[0].calls
    for each in summary.tools:
        counts = map(str, (each.calls, each.failures, each.findings))
        durations = map(_duration, (each.p50, each.p95, each.p99))
        rows.append((render(each.tool)[:60], *counts, *durations))
        eighths = max(round(each.calls / most * _BAR_WIDTH * 8), 1)
        bars.append(_BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8].strip())
    table = zip(aligned(rows, numbers=True), bars, strict=True)
    lines = [f"{row}  {bar}".rstrip() for row, bar in table]
    total = f"{counted(summary.calls, 'call')}, {counted(summary.failures, 'failure')}"
    print_line("\n".join([*lines, "", total + missing]))
    return 0


def _duration(milliseconds: float) -> str:
    return f"{milliseconds:.1f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def _events(path: str, last: int | None) -> Iterator[tuple[Event, StoredRecord]]:
    unreadable = 0
    for record in read(path, last=last):
        event = decode(record) if isinstance(record, StoredRecord) else None
        if isinstance(record, StoredRecord) and event is not None:
            yield event, record
        else:
            unreadable += 1
    if unreadable:
        write_stderr(f"{counted(unreadable, 'record')} could not be read; see `audit verify`")


_SUBCOMMANDS = {
    "verify": ("verify that the records have not been changed", _verify),
    "tail": ("show the latest events", _tail),
    "stats": ("show calls, failures and durations for each tool", _stats),
}
