"""`lint`: put recorded replies to the rules."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Any

from ..errors import AnswerbackError, MissingExtraError
from .program import Program, tell

if TYPE_CHECKING:
    from ..rules.lint.linter import Linter, LintOptions, Report

_STDIN = "-"
_LONG = 20 * 1024 * 1024
_FORMATS = ("text", "json", "sarif", "junit", "github")
_MORE = """\
FILE holds recorded replies: JSON, JSONL, JSON-RPC frames, or a log of the MCP Inspector or of a
proxy; - is stdin. An object with `success` and no `isError` is read as an envelope, any other as
an MCP result.
`answerback rule AB101` explains a rule.

Exit status: 1 if there are errors, and 2 if a file cannot be read or holds no messages at all, so
that nothing was checked; warnings and notes do not count."""
_UNREAD = 2


class CannotLint(AnswerbackError):
    """A file cannot be read, or no rule is called so."""

    code = "CANNOT_LINT"


def run(program: Program, arguments: Sequence[str]) -> int:
    """Exit status 1 if there are errors, 2 if there is a file in which nothing could be checked."""
    given = _parser(program).parse_args(arguments)
    from ..rules.lint.linter import Linter

    options = _options(given)
    # What is repaired on stdin goes to stdout, so that it can be piped on.
    piped = given.fix and _STDIN in given.files
    with ExitStack() as stack:
        out = stack.enter_context(_out(sys.stderr if piped else sys.stdout))
        report, console = _report(given.format, out, piped=piped)
        linter = Linter(options, report)
        unread = []
        for name in given.files:
            try:
                _lint(linter, name, console, fix=given.fix)
            except AnswerbackError as exc:
                unread.append(f"error: {exc}")
        report.done(linter.counts)
    return _end(linter, unread, given.format, console)


def _end(linter: Linter, unread: list[str], form: str, console: Any) -> int:
    from ..rules.reports.plain import summary

    counts = linter.counts
    if form == "text" and console is None and (counts.replies or counts.other_messages):
        tell(summary(counts))
    if counts.schemas_unchecked:
        tell(f"output schemas were not checked: {counts.schemas_unchecked}")
    for each in unread:
        tell(each)
    return _UNREAD if unread else 1 if counts.errors else 0


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser("lint", "FILE… [options]", epilog=_MORE)
    parser.add_argument("files", nargs="+", metavar="FILE", help="what to read; - is stdin")
    parser.add_argument(
        "--format", choices=_FORMATS, default="text", help="how findings are told (default: text)"
    )
    parser.add_argument("--fix", action="store_true", help="repair in place what can be repaired")
    parser.add_argument(
        "--select", action="append", default=[], metavar="RULES", help="only these: AB1,AB502"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="RULES", help="all but these"
    )
    parser.add_argument(
        "--dialect", choices=("mcp", "envelope", "rest", "problem"), help="what all replies are in"
    )
    parser.add_argument("--version", metavar="DATE", help="the version of MCP, such as 2025-11-25")
    return parser


def _options(given: Namespace) -> LintOptions:
    from ..rules.catalogue import select_rules
    from ..rules.lint.linter import LintOptions
    from ..versions import VERSIONS

    try:
        rules = select_rules(_words(given.select), _words(given.ignore))
    except ValueError as exc:
        raise CannotLint(str(exc)) from None
    if given.version is not None and given.version not in VERSIONS:
        there = ", ".join(VERSIONS)
        raise CannotLint(f"no version of MCP is called {given.version!r}; there are {there}")
    version = VERSIONS.get(given.version)
    return LintOptions(dialect=given.dialect, version=version, rules=rules, fix=given.fix)


def _words(lists: list[str]) -> list[str]:
    return [word for each in lists for word in each.replace(",", " ").split()]


def _report(form: str, out: IO[bytes], *, piped: bool) -> tuple[Report, Any]:
    """How findings are told; and the terminal they are told on, if it is one."""
    from ..rules.reports import plain

    match form:
        case "json":
            return plain.JsonLinesReport(out), None
        case "github":
            return plain.GitHubReport(out), None
        case "sarif":
            from .. import __version__
            from ..rules.reports.sarif import SarifReport

            return SarifReport(out, __version__), None
        case "junit":
            from ..rules.reports.junit import JUnitReport

            return JUnitReport(out), None
    stream = sys.stderr if piped else sys.stdout
    if not stream.isatty():
        return plain.LineReport(out), None
    try:
        from rich.console import Console

        from ..rules.reports.terminal import TerminalReport
    except (ImportError, MissingExtraError):
        return plain.LineReport(out), None
    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    return TerminalReport(console), console


@contextmanager
def _out(stream: Any) -> Iterator[IO[bytes]]:
    try:
        yield stream.buffer
    finally:
        stream.flush()


def _lint(linter: Linter, name: str, console: Any, *, fix: bool) -> None:
    with ExitStack() as stack:
        try:
            if name == _STDIN:
                copy = sys.stdout.buffer if fix else None
                read = stack.enter_context(_progress(console, "stdin", None))
                linter.lint("stdin", sys.stdin.buffer, copy, read)
                return
            file = stack.enter_context(open(name, "rb"))
            size = os.fstat(file.fileno()).st_size
            read = stack.enter_context(_progress(console, name, size))
            _lint_file(linter, name, file, read, fix=fix)
        except OSError as exc:
            if isinstance(exc, BrokenPipeError):
                raise
            # Of what fails on the way out no file is named.
            what = f"cannot lint {name}" if exc.filename is None else f"cannot read {name}"
            raise CannotLint(f"{what}: {exc.strerror}") from None


def _lint_file(
    linter: Linter, name: str, file: IO[bytes], read: Callable[[int], None], *, fix: bool
) -> None:
    if not fix:
        linter.lint(name, file, None, read)
        return
    from ..rules.lint.linter import rewrite_file

    rewrite_file(name, lambda copy: linter.lint(name, file, copy, read))


@contextmanager
def _progress(console: Any, name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on long input, where somebody sees it."""
    short = size is not None and size < _LONG
    if short or not sys.stderr.isatty():
        yield lambda _: None
        return
    try:
        from rich.console import Console

        from ..rules.reports.terminal import progress_bar
    except (ImportError, MissingExtraError):
        yield lambda _: None
        return
    # One console for both, where both go to the terminal: the bar makes way for what is told.
    with progress_bar(console or Console(stderr=True), name, size) as read:
        yield read
