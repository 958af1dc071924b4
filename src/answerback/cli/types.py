"""`types`: infers reply types from recorded replies, and prints them as a module."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ..errors import AnswerbackError
from ..inference.inferred_types import SeenReplies, module_source
from ..inference.recorded_replies import RecordedReply, read_replies
from ..server.process import take_stdin, take_stdout
from ..types.problems import counted
from .program import Program, printable, printable_line, write_stderr, write_stdout

_STDIN = "-"
_MAX_SHOWN = 20
_EPILOG = """\
FILE holds recorded replies, in the same formats as for lint: JSON, JSONL, JSON-RPC frames, or a log
from the MCP Inspector or a proxy; - is stdin. It must say which tool each reply came from:
  JSON-RPC messages                      with their requests: a log, or a tap from connect(tap=…)
  lines {"tool": "name", "reply": …}     a reply in any form, such as an MCP result
  records from --audit                   with --audit-keep content

Exit status: 2 if a file cannot be read, or if there are no replies."""


class CannotInfer(AnswerbackError):
    """A file cannot be read, or there is nothing to infer types from."""

    code = "CANNOT_INFER"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("types", "FILE… [options]", epilog=_EPILOG)
    help_text = "a file of recorded replies, or one written by --audit; - is stdin"
    parser.add_argument("files", nargs="+", metavar="FILE", help=help_text)
    help_text = "write dataclasses instead of TypedDicts"
    parser.add_argument("--dataclasses", action="store_true", help=help_text)
    options = parser.parse_args(arguments)
    out, seen, unreadable = take_stdout(), SeenReplies(), 0
    for each in _recorded_replies(options.files):
        if each.data.kind != "unreadable":
            seen.add(each)
            continue
        unreadable += 1
        if unreadable <= _MAX_SHOWN:
            write_stderr(f"{printable_line(each.place)}: {printable_line(each.data.why)}")
    if unreadable > _MAX_SHOWN:
        write_stderr(f"and {counted(unreadable - _MAX_SHOWN, 'line')} more")
    for tool, evidence in sorted(seen.tools.items()):
        if not evidence.count:
            only_content = "its replies have only content, such as images, and no data"
            why = only_content if tool in seen.content else "its replies are all failures"
            write_stderr(f"{printable_line(tool)}: {why}")
    types = seen.types()
    if not types:
        raise CannotInfer("there is no reply to infer a type from")
    source = module_source(types, dataclasses=options.dataclasses)
    write_stdout(out, printable(source).encode() if out.is_terminal else source.encode())
    replies = counted(sum(each.replies for each in types), "reply", "replies")
    write_stderr(f"inferred types for {counted(len(types), 'tool')} from {replies}")
    return 0


def _recorded_replies(names: Sequence[str]) -> Iterator[RecordedReply]:
    for name in names:
        try:
            with os.fdopen(take_stdin(), "rb") if name == _STDIN else open(name, "rb") as file:
                yield from read_replies(file, "stdin" if name == _STDIN else name)
        except OSError as exc:
            raise CannotInfer(f"cannot read {name}: {exc.strerror or exc}") from None
