"""`types`: infers types from recorded replies, and checks other replies by the types in use."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from io import BufferedReader

from ..inference.declared_types import DeclaredType
from ..inference.inferring import SeenReplies
from ..inference.python_source import module_source
from ..inference.recorded_replies import (
    STDIN,
    CannotInfer,
    RecordedReply,
    UnreadableLine,
    read_replies,
)
from ..server.standard_streams import Stdout, take_stdin, take_stdout
from ..types.describe import counted
from .program import (
    Options,
    Program,
    ServerTarget,
    WrongOption,
    add_server_options,
    printable,
    printable_line,
    refuse_server_options,
    write_stderr,
    write_stdout,
)
from .types_calls import call_read_only
from .types_in_use import TypesInUse, load_types
from .types_patch import patched_files

_FILES = (".jsonl", ".json", ".ndjson", ".log", ".txt", ".har", ".db", ".sqlite", ".sqlite3")
_MAX_SHOWN = 20
_EPILOG = """\
SOURCE is a file of replies, an App, or a server; files and one App or server may be combined.
A file (.jsonl, .json, .log, .har, .db, .sqlite; - is stdin) has one of these:
  lines {"tool": "name", "reply": …}     a reply in any form, such as an MCP result
  the records of --audit                 with --audit-keep content
  a tap of connect(tap=…), or a log      JSON-RPC messages with their requests
An App (server.py) says which tools have no types yet; --patch changes its files, and --check
compares the replies with its types, or with those of a printed module. Any other SOURCE is a
server: a URL, a command, or a host's mcp.json.

Nothing is called without --call, which only calls tools that say that they are read-only.

Exit status: 1 if --check finds a reply that does not fit; 2 if there are no replies."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = _parser(program)
    options = parser.parse_args(arguments)
    files = [each for each in options.sources if _is_file_of_replies(each)]
    targets = [each for each in options.sources if each not in files]
    if program.app is not None and targets:
        parser.error(f"{targets[0]!r} is not a file of replies; the App is this program's own")
    if len(targets) > 1:
        parser.error(f"give one App or server, not {len(targets)}: {', '.join(targets)}")
    if options.patch and options.check:
        parser.error("give --patch or --check, not both")
    # Before the author's module is loaded: it may print and read as well.
    out, stdin = take_stdout(), take_stdin()
    target = targets[0] if targets else None
    server = None if target is None else program.find_server(target)
    if server is None:
        refuse_server_options(options)
    in_use = load_types(program, target) if server is None else None
    if (options.patch or options.check) and in_use is None:
        flag = "--patch" if options.patch else "--check"
        raise WrongOption(f"{flag} needs the App: add its file, such as server.py")
    if options.patch and in_use is not None and in_use.app is None:
        raise WrongOption(f"--patch needs the App; {target} has no App, only types")
    with os.fdopen(stdin, "rb") as file:
        replies = _Replies(files, file)
        if options.call:
            replies.add_calls(_calls(server, in_use, options))
        if options.check:
            assert in_use is not None
            return _check(replies, in_use, out)
        return _infer(replies, in_use, options, out)


def _calls(
    server: ServerTarget | None, in_use: TypesInUse | None, options: Options
) -> Iterator[RecordedReply]:
    called = server if in_use is None else in_use.app
    if called is None:
        raise WrongOption("--call needs an App or a server to call")
    only = None if in_use is None or options.check else in_use.without_types
    return call_read_only(called, options, only)


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser("types", "SOURCE… [options]", epilog=_EPILOG)
    many = "*" if program.app is not None else "+"
    parser.add_argument(
        "sources",
        nargs=many,
        metavar="SOURCE",
        help="a file of replies or of --audit, an App, or a server",
    )
    parser.add_argument(
        "--patch", action="store_true", help="print a diff of the App's files, for git apply"
    )
    parser.add_argument(
        "--check", action="store_true", help="say which replies do not fit the types in use"
    )
    parser.add_argument(
        "--dataclasses", action="store_true", help="write dataclasses in place of TypedDicts"
    )
    parser.add_argument(
        "--call",
        action="store_true",
        help="call the read-only tools that need no arguments or have examples",
    )
    add_server_options(parser, program)
    return parser


def _is_file_of_replies(source: str) -> bool:
    if source == STDIN:
        return True
    if not source.lower().endswith(_FILES) or "://" in source:
        return False
    return not source.endswith(".json") or not _is_host_file(source)


def _is_host_file(source: str) -> bool:
    """Return whether a JSON file begins as the configuration of a host does."""
    try:
        with open(source, "rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return b'"mcpServers"' in head or b'"servers"' in head


class _Replies:
    """All replies of the sources; it reports the lines that cannot be read."""

    def __init__(self, files: Sequence[str], stdin: BufferedReader) -> None:
        self._files = files
        self._stdin = stdin
        self._calls: Iterator[RecordedReply] = iter(())
        self.unreadable = 0
        self.has_sources = bool(files)

    def add_calls(self, calls: Iterator[RecordedReply]) -> None:
        self._calls = calls
        self.has_sources = True

    def __iter__(self) -> Iterator[RecordedReply]:
        for name in self._files:
            for each in read_replies(name, self._stdin):
                if isinstance(each, UnreadableLine):
                    self._report(each.place, each.why)
                elif each.found.kind == "unreadable":
                    self._report(each.place, each.found.why)
                else:
                    yield each
        yield from self._calls
        if self.unreadable > _MAX_SHOWN:
            write_stderr(f"and {counted(self.unreadable - _MAX_SHOWN, 'line')} more")

    def _report(self, place: str, why: str) -> None:
        self.unreadable += 1
        if self.unreadable <= _MAX_SHOWN:
            write_stderr(f"{printable_line(place)}: {printable_line(why)}")


def _infer(replies: _Replies, in_use: TypesInUse | None, options: Options, out: Stdout) -> int:
    if not replies.has_sources:
        raise CannotInfer(_what_to_do(in_use))
    seen = SeenReplies(() if in_use is None else in_use.dicts)
    for each in replies:
        seen.add(each)
    _print_left_out(seen, in_use)
    wanted = None if in_use is None else in_use.without_types
    types = seen.types(wanted)
    if not types:
        raise CannotInfer("there is no reply to infer a type from")
    if options.patch:
        assert in_use is not None
        _print_patch(seen, in_use, options, out)
    else:
        source = module_source(types, dataclasses=options.dataclasses)
        write_stdout(out, printable(source).encode() if out.is_terminal else source.encode())
    number = sum(each.replies for each in types)
    write_stderr(
        f"{counted(len(types), 'tool')} with a type, from {counted(number, 'reply', 'replies')}"
    )
    return 0


def _what_to_do(in_use: TypesInUse | None) -> str:
    record = "record some with --audit replies.jsonl --audit-keep content, or add --call"
    if in_use is None:
        return f"there are no replies to infer types from; {record}"
    names = ", ".join(sorted(in_use.without_types))
    if not names:
        return "all tools have types; give replies and --check to compare them"
    return f"these tools have no types: {names}; give a file of their replies: {record}"


def _print_left_out(seen: SeenReplies, in_use: TypesInUse | None) -> None:
    for tool, each in sorted(seen.tools.items()):
        name = printable_line(tool)
        if in_use is not None and tool not in in_use.types:
            write_stderr(f"{name}: the App has no such tool")
        elif in_use is not None and tool not in in_use.without_types:
            write_stderr(f"{name}: it has a type already; --check compares the replies with it")
        elif not each.replies and each.other:
            write_stderr(f"{name}: its replies have only content, such as images, and no data")
        elif not each.replies:
            write_stderr(f"{name}: its replies are failures only")


def _print_patch(seen: SeenReplies, in_use: TypesInUse, options: Options, out: Stdout) -> None:
    tools = {
        name: in_use.tools[name] for name in sorted(in_use.without_types) if name in seen.tools
    }
    try:
        files, notes = patched_files(tools, seen, dataclasses=options.dataclasses)
    except (OSError, SyntaxError, ValueError) as exc:
        raise CannotInfer(f"a file of the App cannot be changed: {exc}") from None
    for file in files:
        if file.is_changed:
            write_stdout(out, file.diff().encode())
        for note in file.notes:
            write_stderr(f"{file.path}:{note.line}: {note.text}")
    for text in notes:
        write_stderr(printable(text))


def _check(replies: _Replies, in_use: TypesInUse, out: Stdout) -> int:
    if not replies.has_sources:
        raise CannotInfer("there are no replies to check; give a file of them")
    checks: dict[str, DeclaredType] = {}
    checked = misfits = 0
    unknown: set[str] = set()
    for each in replies:
        if each.found.kind not in ("data", "text"):
            continue
        if each.tool not in in_use.types:
            unknown.add(each.tool)
            continue
        if each.tool not in checks:
            checks[each.tool] = _declared(each.tool, in_use)
        checked += 1
        misfits += _print_misfit(each, checks[each.tool], out)
    for tool in sorted(unknown):
        write_stderr(f"{printable_line(tool)}: there is no type of this tool")
    if not checked:
        raise CannotInfer("there is no reply to check")
    fitting = checked - misfits
    write_stderr(f"{fitting:,} of {counted(checked, 'reply', 'replies')} fit")
    return 1 if misfits else 0


def _declared(tool: str, in_use: TypesInUse) -> DeclaredType:
    try:
        return DeclaredType(in_use.types[tool])
    except TypeError as exc:
        raise CannotInfer(f"the type of {tool} cannot be used: {exc}") from None


def _print_misfit(each: RecordedReply, declared: DeclaredType, out: Stdout) -> bool:
    """Print what of a reply does not fit; return whether there is anything."""
    problems = declared.problems_of(each.found)
    for problem in problems:
        line = printable_line(f"{each.place}: {each.tool}: {problem}")
        write_stdout(out, f"{line}\n".encode())
    return bool(problems)
