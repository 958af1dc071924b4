"""`lint`: checks recorded replies against the rules, and repairs them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from .. import __version__
from ..core.versions import VERSIONS
from ..errors import AnswerbackError
from ..rules import reports
from ..rules.catalogue import select_rules
from ..rules.lint.linter import Linter, LintOptions, Report
from ..rules.lint.rewriting import CannotRewrite, rewrite_file
from ..rules.reports import summary
from .program import Program, write_stderr

_STDIN = "-"
_PROGRESS_BYTES = 20 * 1024 * 1024  # Smaller files finish before a progress bar would help.
_FORMATS = ("text", "json", "sarif")
_EPILOG = """\
FILE holds recorded replies: JSON, JSONL, JSON-RPC frames, or a log from the MCP Inspector or a
proxy; - is stdin. An object with `success` and no `isError` is read as an envelope, and any
other object as an MCP result.
`answerback rule AB101` explains a rule.

Exit status: 1 if there are errors, 2 if a file cannot be read or contains no messages to check.
Warnings and notes do not count."""
_EXIT_UNREADABLE = 2


class CannotLint(AnswerbackError):
    """A file cannot be read, or an option names an unknown rule or MCP version."""

    code = "CANNOT_LINT"


def run(program: Program, arguments: Sequence[str]) -> int:
    """Return 1 if there are errors, 2 if a file cannot be read or has nothing to check."""
    options = _parser(program).parse_args(arguments)
    lint_options = _lint_options(options)
    # With --fix, the repaired stdin goes to stdout, so the findings go to stderr.
    stream = sys.stderr if options.fix and _STDIN in options.files else sys.stdout
    try:
        report, console = _make_report(options.format, stream.buffer, stream)
        linter = Linter(lint_options, report)
        unreadable = []
        for name in options.files:
            try:
                _lint_input(linter, name, console, options)
            except AnswerbackError as exc:
                unreadable.append(f"error: {exc}")
        report.done(linter.counts)
    finally:
        stream.flush()
    counts = linter.counts
    if options.format == "text" and console is None and (counts.replies or counts.other_messages):
        write_stderr(summary(counts))
    if counts.schemas_unchecked:
        write_stderr(f"output schemas were not checked: {counts.schemas_unchecked}")
    for error in unreadable:
        write_stderr(error)
    return _EXIT_UNREADABLE if unreadable else 1 if counts.errors else 0


def _parser(program: Program) -> ArgumentParser:
    parser = program.parser("lint", "FILE… [options]", epilog=_EPILOG)
    text = "a file of recorded replies; - is stdin"
    parser.add_argument("files", nargs="+", metavar="FILE", help=text)
    text = "the format of the findings (default: text)"
    parser.add_argument("--format", choices=_FORMATS, default="text", help=text)
    parser.add_argument("--fix", action="store_true", help="repair files in place where possible")
    text = "also repair read-only files and files owned by other users"
    parser.add_argument("--force", action="store_true", help=text)
    text = "check only these rules, such as AB1,AB502"
    parser.add_argument("--select", action="append", default=[], metavar="RULES", help=text)
    text = "do not check these rules, such as AB203"
    parser.add_argument("--ignore", action="append", default=[], metavar="RULES", help=text)
    text = "the dialect of all replies (default: detected automatically)"
    parser.add_argument("--dialect", choices=("mcp", "envelope", "rest", "problem"), help=text)
    parser.add_argument("--version", metavar="DATE", help="the MCP version, such as 2025-11-25")
    return parser


def _lint_options(options: Namespace) -> LintOptions:
    try:
        rules = select_rules(_split_lists(options.select), _split_lists(options.ignore))
    except ValueError as exc:
        raise CannotLint(str(exc)) from None
    if options.version is not None and options.version not in VERSIONS:
        known = ", ".join(VERSIONS)
        raise CannotLint(f"there is no MCP version {options.version!r}; the versions are {known}")
    version = VERSIONS.get(options.version)
    return LintOptions(dialect=options.dialect, version=version, rules=rules, fix=options.fix)


def _split_lists(lists: list[str]) -> list[str]:
    return [word for each in lists for word in each.replace(",", " ").split()]


def _make_report(form: str, out: IO[bytes], stream: Any) -> tuple[Report, Any]:
    """Return the report in the chosen format, and its rich console if it goes to a terminal."""
    match form:
        case "json":
            return reports.JsonLinesReport(out), None
        case "sarif":
            return reports.SarifReport(out, __version__), None
    console = _console(stream)
    if console is None:
        return reports.LineReport(out), None
    from ..rules.terminal_report import TerminalReport

    return TerminalReport(console), console


def _console(stream: Any) -> Any:
    """Return a rich console; None if *stream* is not a terminal or rich is not installed."""
    if not stream.isatty():
        return None
    try:
        from rich.console import Console
    except ImportError:
        return None
    return Console(file=stream, highlight=False, emoji=False, markup=False)


def _lint_input(linter: Linter, name: str, console: object, options: Namespace) -> None:
    try:
        if name == _STDIN:
            copy = sys.stdout.buffer if options.fix else None
            with _progress(console, "stdin", None) as read:
                linter.lint("stdin", sys.stdin.buffer, copy, read)
            return
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            with _progress(console, name, size) as read:
                if not options.fix:
                    linter.lint(name, file, None, read)
                    return
                fixed = linter.counts.fixed
                try:
                    rewrite_file(
                        name,
                        file,
                        lambda copy: linter.lint(name, file, copy, read),
                        force=options.force,
                    )
                except CannotRewrite:
                    linter.counts.fixed = fixed
                    raise
    except BrokenPipeError:
        raise
    except OSError as exc:
        # Only open() sets a filename; without one, writing the report or the repaired copy failed.
        problem = f"cannot lint {name}" if exc.filename is None else f"cannot read {name}"
        raise CannotLint(f"{problem}: {exc.strerror}") from None


@contextmanager
def _progress(console: Any, name: str, size: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar for long input on a terminal; yield a callback for bytes read."""
    is_long = size is None or size >= _PROGRESS_BYTES
    # Share the console with the report, so that findings are printed above the bar.
    shown = (console or _console(sys.stderr)) if is_long and sys.stderr.isatty() else None
    if shown is None:
        yield lambda _: None
        return
    from ..rules.terminal_report import progress_bar

    with progress_bar(shown, name, size) as read:
        yield read
