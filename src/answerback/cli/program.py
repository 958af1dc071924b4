"""The running program (`answerback`, or a file that runs its App): finds and runs a command.

Also holds what the commands share: the target's App or server, common options, and printing.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..errors import CODES, AnswerbackError, ToolError

if TYPE_CHECKING:
    import asyncio
    from argparse import ArgumentParser, Namespace, _ActionsContainer
    from types import SimpleNamespace

    from ..app import App
    from ..calls.loop_thread import GivenLoop
    from ..contract import Contract
    from ..core.reply import Reply
    from ..registry.declarations import ListedKind
    from ..server.process import Stdout


ServerAddress: TypeAlias = "str | list[str]"
"""A server for `connect`: a URL, a host's file, or a command."""
Options: TypeAlias = "Namespace | SimpleNamespace"
"""A command's options; a command without options does not load argparse."""
COMMANDS = {
    "serve": "serve the tools over HTTP: REST, MCP, OpenAPI and health on one port",
    "console": "call the tools of any server from a page in the browser",
    "mcp": "serve the tools over MCP to a language model's host, on stdin and stdout",
    "call": "call one tool from the shell",
    "list": "list the tools, resources and prompts",
    "read": "read one resource",
    "prompt": "fill in one prompt, and print its messages",
    "openapi": "print the OpenAPI 3.1 document",
    "cgi": "answer one CGI request from a web server",
    "install": "add the server to Claude Desktop, Claude Code, Cursor, Gemini CLI or VS Code",
    "new": "create a small project with a server and its tests",
    "types": "infer reply types from recorded replies",
    "lint": "check recorded replies against the rules, and repair them",
    "rule": "explain a rule, or list them all",
    "schema": "print the JSON Schema of a reply in a dialect",
    "key": "generate an API key, and the digest that the server stores",
    "token": "print a test token from a server started with --dev-auth",
    "audit": "show the recorded replies, and verify that no record was changed",
    "tasks": "list, show and cancel a server's tasks",
    "worker": "run the tasks that servers on other hosts create",
    "state": "create, check and update the tables that several hosts share",
}

WITHOUT_TARGET = {
    "install": "claude calculator.py",
    "new": "my-notes",
    "types": "replies.jsonl",
    "lint": "replies.jsonl",
    "rule": "AB101",
    "schema": "mcp",
    "key": "--name ci",
    "token": "http://127.0.0.1:8000 --user alice",
    "audit": "stats audit.db",
    "tasks": "list --tasks tasks.db",
    "state": "init postgresql://localhost/tools",
}
"""The commands whose first argument is not a target, each with example arguments."""

WITH_SERVERS = ("call", "console", "list", "read", "prompt")
"""The commands whose target can be any MCP server."""

LOADING: ContextVar[bool] = ContextVar("LOADING", default=False)
"""True while a command imports its target: an `app.run()` in that module then does nothing."""
_FAILED = 1
_USAGE_ERROR = 2
_CANNOT_WRITE = 74
_UNAVAILABLE = 69
# These commands may be started without stdout, or report in another way.
_WITHOUT_OUTPUT = ("serve", "mcp", "cgi")
# Programs start these commands and wait for them; collecting garbage costs milliseconds.
_STARTED_OFTEN = ("mcp", "call")
# The exit statuses that a shell reports for SIGINT and SIGPIPE.
_INTERRUPTED, _BROKEN_PIPE = 130, 141
_APP_HELP = """\
TARGET is the App's file or module: calculator.py, dir/calculator.py:app or package.module:app.
The name after the colon is only needed if there are several Apps."""
_TARGET_HELP = """\
TARGET is one of these, tried in this order:
  a URL                 https://example.com/mcp
  a host's file         mcp.json: all of its servers, or one with --server
  an App's file         calculator.py, dir/calculator.py:app
  an App's module       package.module:app, package.module
  a command             mcp-server-time, ./server, or several words: "npx -y server"
An App is loaded; the name after the colon is only needed if there are several. A command is
started, and talks MCP on its stdin and stdout; a file without .py is a command."""
SERVER_OPTIONS = (
    *("server", "token", "header", "transport", "env", "inherit_env", "timeout", "server_log"),
)
_SERVER_OPTIONS_HELP = """\
Write '${NAME}', in single quotes, for the value of the environment variable NAME. This keeps
secrets out of the process list, which other users of this machine can see."""


class CannotWrite(AnswerbackError):
    """Stdout is closed, or cannot be written to."""

    code = "CANNOT_WRITE"


class WrongOption(AnswerbackError):
    """An option does not apply to the target, or its value cannot be parsed."""

    code = "BAD_OPTION"


class CannotLoad(AnswerbackError):
    """The target has no App, or importing its module failed (see `__cause__`)."""

    code = "CANNOT_LOAD"


class NoSuchTarget(CannotLoad):
    """No file, module or command has the target's name; *advice* says what to write instead."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason = reason


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `answerback COMMAND TARGET …` and return the exit status."""
    return run_program(Program("answerback"), sys.argv[1:] if arguments is None else arguments)


def run_program(program: Program, arguments: Sequence[str]) -> int:
    command, *rest = arguments or ("--help",)
    try:
        if sys.stdout is None and command not in _WITHOUT_OUTPUT:
            raise CannotWrite("cannot write to stdout: it is closed")
        try:
            status = _run_command(program, command, rest)
        except SystemExit:  # argparse printed the help, or an error.
            print_text("")
            raise
        # Wires write their own output, and leave nothing in `sys.stdout`'s buffer.
        if command not in _WITHOUT_OUTPUT:
            print_text("")
        return status
    except AnswerbackError as exc:
        return _print_error(exc)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        return _BROKEN_PIPE


def _run_command(program: Program, command: str, arguments: Sequence[str]) -> int:
    if command not in COMMANDS:
        from . import help as texts

        match command:
            case "-h" | "--help" | "help":
                print_text(printable(texts.help_text(program)))
                return 0
            case "-V" | "--version" | "version":
                print_text(printable(texts.version_text(program)))
                return 0
        write_stderr(texts.unknown_command(program, command, arguments))
        return _USAGE_ERROR
    if command in _STARTED_OFTEN:
        from ..server.process import collect_garbage_less_often

        collect_garbage_less_often()
    status: int = import_module(f".{command}", __package__).run(program, arguments)
    return status


def _print_error(exc: AnswerbackError) -> int:
    """Print the error on one line, below the traceback if the author's own module failed."""
    cause = exc.__cause__ if isinstance(exc, CannotLoad) else None
    if cause is not None:
        import traceback

        write_stderr("".join(traceback.format_exception(cause)).rstrip())
    # Later lines are indented, because the message may contain untrusted text.
    write_stderr(f"error: {exc}".replace("\n", "\n  "))
    if isinstance(exc, CannotWrite):
        return _CANNOT_WRITE
    if isinstance(exc, ToolError) and exc.code in CODES:
        return CODES[exc.code].exit
    if exc.code == "LIFESPAN_FAILED":
        return _FAILED
    return _UNAVAILABLE if exc.code == "UNAVAILABLE" else _USAGE_ERROR


class Program:
    """The running program.

    `answerback list calculator.py` has no App and takes a target; `python calculator.py list` has
    its App and takes none.
    """

    def __init__(self, name: str, app: App | None = None, loop: GivenLoop | None = None) -> None:
        self.name = name
        self.app = app
        self.loop = loop
        """The event loop of `app.run_async`; the command then runs in another thread."""

    def command_line(self, command: str, target: str | None = None) -> str:
        """Return the command line up to the command's own arguments, with *target* if needed."""
        words = (self.name, command, target if self.app is None else None)
        return " ".join(word for word in words if word)

    def parser(self, command: str, usage: str = "[options]", **options: Any) -> ArgumentParser:
        """Return a parser for the arguments after the command; *options* are for argparse."""
        from argparse import RawDescriptionHelpFormatter

        from .argument_parser import PrintableParser

        needs_no_target = command in WITHOUT_TARGET
        target_help = _TARGET_HELP if command in WITH_SERVERS else _APP_HELP
        options.setdefault("epilog", None if self.app or needs_no_target else target_help)
        line = self.command_line(command, None if needs_no_target else "TARGET")
        return PrintableParser(
            prog=self.command_line(command),
            usage=f"{line} {usage}".rstrip(),
            description=COMMANDS[command],
            # Without a width, argparse imports shutil on every call to find the terminal's.
            formatter_class=partial(RawDescriptionHelpFormatter, width=88),
            allow_abbrev=False,
            **options,
        )

    def parser_with_target(
        self, command: str, usage: str = "[options]", description: str = ""
    ) -> ArgumentParser:
        """Return a parser that also takes a target, which is None for a program with an App."""
        parser = self.parser(command, usage)
        if description:
            parser.description = f"{parser.description}\n\n{description}"
        self.add_target(parser)
        return parser

    def add_target(self, parser: ArgumentParser) -> None:
        """Add the target argument; the target is None for a program with an App."""
        if self.app is None:
            parser.add_argument("target", metavar="TARGET", help="see below")
        else:
            parser.set_defaults(target=None)

    def target(
        self, command: str, arguments: Sequence[str]
    ) -> tuple[str | None, Callable[[], App]]:
        """Return the target of a command whose only options are tags, and a function to load it.

        The usual cases skip argparse, because importing it slows down startup.
        """
        if self.app is not None and not arguments:
            return None, partial(self.load, None)
        if self.app is None and len(arguments) == 1 and not arguments[0].startswith("-"):
            return arguments[0], partial(self.load, arguments[0])
        parser = self.parser_with_target(command)
        add_tag_options(parser)
        options = parser.parse_args(arguments)
        return options.target, partial(self.load_tagged, options.target, options)

    def find_server(self, target: str | None) -> ServerAddress | None:
        """Return the server that the target names; None if it is an App. Raises CannotLoad."""
        is_file = target is not None and target.endswith(".py") and " " not in target
        if self.app is not None or target is None or is_file:
            return None
        from .target import find_server

        return find_server(target)

    def load(self, target: str | None) -> App:
        if self.app is not None:
            return self.app
        from .target import load

        return load(target or "")

    def load_tagged(self, target: str | None, options: Options) -> App:
        """Load the App, with only the entries that `--tag` and `--exclude-tag` select."""
        app = self.load(target)
        if options.tag or options.exclude_tag:
            from .target import select_by_tags

            select_by_tags(app, options.tag, options.exclude_tag)
        return app

    @contextmanager
    def open(
        self, server: ServerAddress | None, options: Options
    ) -> Iterator[tuple[Target, Stdout]]:
        """Load the App `options.target` or connect to *server*; yield it and stdout."""
        from ..server.process import take_stdin, take_stdout

        # Do this before loading the author's module, which may itself read stdin or print.
        out, stdin = take_stdout(), take_stdin()
        if server is None:
            # An App needs neither asyncio nor the client, which are slow to import.
            from .call import AppTarget

            refuse_server_options(options)
            app = self.load_tagged(options.target, options)
            yield AppTarget(self, app, options, stdin), out
            return
        from .server_target import open_server

        with open_server(server, options, out, stdin) as target:
            yield target, out


class Target(Protocol):
    """An App in this process, or a server: what `call`, `list`, `read` and `prompt` need of it."""

    name: str
    contract: Contract

    @property
    def tools(self) -> Mapping[str, object]: ...
    def tool_help(self, name: str) -> str: ...

    # Each entry's usage and summary; *alone* if the user asked for this kind of entry.
    def rows(self, kind: ListedKind, *, alone: bool) -> list[tuple[str, str]]: ...
    def entries(self, kind: ListedKind) -> bytes: ...
    def write_notes(self) -> None: ...
    def advice(self, kind: ListedKind) -> str | None: ...

    def call(self, name: str, words: Sequence[str]) -> Reply[Any]: ...
    def read(self, uri: str) -> Reply[Any]: ...

    # The reply has a block for each message; the `roles` and `description` are in its meta.
    def prompt(self, name: str, words: Sequence[str]) -> Reply[Any]: ...


def require_widgets(app: App) -> App:
    """Return the app; raises CannotLoad if a tool names a widget that its app does not have."""
    if any(each.settings.widget or each.settings.meta for each in app.tools.values()):
        from .target import check_widgets_of

        check_widgets_of(app)
    return app


def add_server_options(parser: ArgumentParser, program: Program, *, timeout: bool = True) -> None:
    """Add the options for commands whose target can be a server; *timeout* adds `--timeout`."""
    if program.app is not None:
        parser.set_defaults(**dict.fromkeys(SERVER_OPTIONS))
        return
    group = parser.add_argument_group(
        "options for a server (a URL, a command, or an mcp.json)", _SERVER_OPTIONS_HELP
    )
    text = "one server from an mcp.json; the others are not started"
    group.add_argument("--server", metavar="NAME", help=text)
    group.add_argument("--token", help="for a URL: the token to send with each request")
    add_repeatable(group, "--header", "NAME:VALUE", "for a URL: a header to send with each request")
    text = "for a URL: how to call the server; rest is for servers without MCP"
    group.add_argument("--transport", choices=("http", "sse", "rest"), help=text)
    add_repeatable(group, "--env", "NAME=VALUE", "for a command: an environment variable")
    text = "for a command: pass your whole environment to the server"
    group.add_argument("--inherit-env", action="store_true", help=text)
    if timeout:
        text = "give up after this many seconds (default: 60, and 30 for connecting)"
        group.add_argument("--timeout", type=positive_seconds, metavar="SECONDS", help=text)
    text = "show the server's log messages and, for a command, its stderr"
    group.add_argument("--server-log", action="store_true", help=text)


def refuse_server_options(options: Options) -> None:
    """Raise WrongOption for an option that does not apply to an App."""
    for name in SERVER_OPTIONS:
        if getattr(options, name, None):
            flag = f"--{name.replace('_', '-')}"
            raise WrongOption(f"{flag} is for a server: a URL, a command, or a host's file")


def add_tag_options(parser: ArgumentParser) -> None:
    """Add the options for commands that select tools by tag."""
    text = "only the tools, resources and prompts with this tag"
    add_repeatable(parser, "--tag", "TAG", text)
    add_repeatable(parser, "--exclude-tag", "TAG", "leave out everything with this tag")


def add_log_level_option(parser: ArgumentParser) -> None:
    """Add the option for commands that serve until they are stopped."""
    levels = ("debug", "info", "warning", "error", "critical")
    text = f"log to stderr at this level and above: {', '.join(levels)}"
    parser.add_argument("--log-level", type=str.lower, choices=levels, metavar="LEVEL", help=text)


def add_repeatable(parser: _ActionsContainer, name: str, metavar: str, text: str) -> None:
    """Add an option whose value is a list; *text* is its help."""
    text += "; may be repeated"
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=text)


def usage_line(name: str, kinds: Mapping[str, str], required: Container[str]) -> str:
    """Return a usage line such as `greet name=TEXT [times=INTEGER]`.

    *kinds* has a placeholder for each argument, such as TEXT.
    """
    pairs = [
        f"{each}={kind}" if each in required else f"[{each}={kind}]" for each, kind in kinds.items()
    ]
    return " ".join([name, *pairs])


def aligned(rows: Sequence[Sequence[str]], *, numbers: bool = False) -> list[str]:
    """Return aligned rows; with *numbers*, all columns but the first are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:>{width}}" if numbers and column else f"{cell:{width}}"
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def positive_int(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:10])):
        raise wrong_type(f"must be a whole number of at least 1, not {text!r}")
    return int(text)


def positive_seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not 0 < number < float("inf"):
        raise wrong_type(f"must be a number of seconds, not {text!r}")
    return number


def wrong_type(message: str) -> Exception:
    from argparse import ArgumentTypeError

    return ArgumentTypeError(message)


def write_stderr(text: str) -> None:
    """Write a printable line to stderr; ignore a closed or missing stderr."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"{printable(text)}\n")


def write_note(text: str) -> None:
    # Later lines are indented, because the text may be untrusted.
    write_stderr(f"note: {text}".replace("\n", "\n  "))


def printable(text: str) -> str:
    """Escape terminal control characters, because the text may be untrusted."""
    if text.replace("\n", "").isprintable():
        return text
    from ..dialects.readable import render

    return render(text)


def printable_line(text: str) -> str:
    """Escape line breaks too, so that an untrusted name or URI cannot imitate another line."""
    return printable(text).replace("\n", "\\n")


def printable_json(text: str) -> str:
    """Escape control characters in JSON text, using JSON escapes."""
    if text.replace("\n", "").isprintable():
        return text
    from ..dialects.readable import escape_json

    return escape_json(text)


def write_json(out: Stdout, body: bytes) -> None:
    """Write a line of JSON to stdout; for a terminal, escape control characters."""
    line = printable_json(body.decode()).encode() if out.is_terminal else body
    write_stdout(out, line + b"\n")


def print_text(text: str) -> None:
    """Print to `sys.stdout` and flush it; raises CannotWrite or BrokenPipeError."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as exc:
        # Python would try again at exit, and print a traceback.
        sys.stdout = None
        if isinstance(exc, BrokenPipeError):
            raise
        raise CannotWrite(f"cannot write to stdout: {exc.strerror}") from None


def print_line(text: str) -> None:
    print_text(f"{text}\n")


def print_json(body: bytes) -> None:
    """Print a line of JSON; for a terminal, escape control characters."""
    text = body.decode("utf-8", "replace")
    print_line(printable_json(text) if sys.stdout.isatty() else text)


def write_stdout(out: Stdout, data: bytes) -> None:
    """Write to stdout; raises CannotWrite, or BrokenPipeError if the reader is gone."""
    try:
        out.write(data)
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise CannotWrite(f"cannot write to stdout: {exc.strerror}") from None


def remind_to_run(app_name: str, app: App) -> None:
    """Warn that a program never ran its App, and say what to add."""
    path, command = sys.argv[0], "".join(sys.argv[1:2])
    if not path.endswith(".py") or (command and command not in COMMANDS):
        return
    with suppress(OSError), open(path, "rb") as source:
        if f"{app_name}.run".encode() in source.read():
            return  # The program ended early, for example with sys.exit().
    from .target import module_with

    if module_with(app) is not None:
        return  # The program imports an App from another file, and may use its functions.
    file = os.path.basename(path)
    so_far = ", so nothing was done" if command else ""
    write_stderr(
        f"{file} has an App but does not run it{so_far}; "
        f"add {app_name}.run() at its end, or type: answerback {command or 'list'} {file}"
    )


def run_app(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run `python calculator.py COMMAND …`; exits the process unless the status is 0."""
    if LOADING.get():
        return
    _warn_if_loaded_twice(app)
    if arguments is None:
        arguments = _program_arguments()
    status = run_program(Program(program_name(sys.argv[0]), app), arguments)
    if status:
        sys.exit(status)


async def run_app_async(app: App, arguments: Sequence[str] | None = None) -> None:
    """Run a command in a thread, with its coroutines on the running loop.

    Cancelling the task stops the server, as do SIGINT and SIGTERM in the main thread.
    """
    if LOADING.get():
        return
    _warn_if_loaded_twice(app)
    import asyncio
    import threading
    from concurrent.futures import Future

    from ..calls.loop_thread import GivenLoop

    loop = asyncio.get_running_loop()
    given = GivenLoop(loop)
    program = Program(program_name(sys.argv[0]), app, given)
    words = _program_arguments() if arguments is None else arguments
    done: Future[int] = Future()

    def run() -> None:
        done.set_running_or_notify_cancel()
        try:
            done.set_result(run_program(program, words))
        except BaseException as exc:  # noqa: BLE001 -- raised where the task is waiting
            done.set_exception(exc)

    # Not a thread from the loop's pool, because the program would wait for it at exit.
    thread = threading.Thread(target=run, name="answerback-run", daemon=True)
    ended = asyncio.wrap_future(done)

    def interrupt() -> None:
        if not given.stop():
            ended.cancel()

    with _signals_to(loop, interrupt) as signalled:
        thread.start()
        try:
            status = await asyncio.shield(ended)
        except asyncio.CancelledError:
            if ended.cancelled():
                sys.exit(128 + signalled[0])
            if given.stop():
                await asyncio.wait((ended,))
            raise
    if status:
        sys.exit(128 + signalled[0] if signalled else status)


def _warn_if_loaded_twice(app: App) -> None:
    """Warn if another file imports the program, which loads it again with a second App."""
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None) or ""
    spec = getattr(main, "__spec__", None)
    name = os.path.basename(path).removesuffix(".py") if spec is None else spec.name
    other = sys.modules.get(name)
    if other is None or other is main or getattr(other, "__file__", None) != os.path.abspath(path):
        return
    if any(type(value) is type(app) and value is not app for value in vars(other).values()):
        write_stderr(
            f"{os.path.basename(path)} was loaded twice, as the program and as the module {name!r} "
            "that another file imports; there are now two Apps, and this one lacks everything that "
            "the other file registers; create the App in a separate file that both import"
        )


@contextmanager
def _signals_to(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[list[int]]:
    """Make SIGINT and SIGTERM call *stop* on the loop; yield the list of signals received."""
    import signal
    import threading

    signalled: list[int] = []

    def handle(number: int) -> None:
        signalled.append(number)
        stop()

    before = {}
    # Only the main thread can set a handler.
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.getsignal(number)
            try:
                # This wakes the loop even if the signal arrives just before `select`.
                loop.add_signal_handler(number, handle, number)
            except NotImplementedError:  # on Windows
                signal.signal(number, lambda got, _: loop.call_soon_threadsafe(handle, got))
    try:
        yield signalled
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _program_arguments() -> Sequence[str]:
    """Return the program's arguments; a program started by a web server or host needs none."""
    if "GATEWAY_INTERFACE" in os.environ:
        # A web server may turn the query string into arguments (RFC 3875), which any client
        # controls, so under CGI the arguments are ignored.
        return ("cgi",)
    if len(sys.argv) > 1 or os.isatty(0) or os.isatty(1):
        return sys.argv[1:]
    # Hosts start `python server.py` without arguments, as other frameworks' servers expect.
    try:
        has_client = not stat.S_ISCHR(os.fstat(0).st_mode)  # /dev/null
    except OSError:  # Stdin is closed.
        has_client = False
    if not has_client:
        write_stderr(
            "no command was given, and no MCP client is on stdin; --help shows the commands"
        )
    return ("mcp",)


def program_name(started: str) -> str:
    """Return what to type to start a program with its own App; *started* is `sys.argv[0]`.

    That is `mytool` for a console script, its path if it is not on the PATH, `python -m tools` or
    `python calculator.py`.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return f"python -m {spec.name.removesuffix('.__main__')}"
    typed = started
    if os.name == "posix" and not re.fullmatch(r"[\w./-]+", started, re.ASCII):
        import shlex

        typed = shlex.quote(started)
    if started.endswith(".py") or not os.access(started, os.X_OK):
        return f"python {typed}"
    folder, name = os.path.split(os.path.abspath(started))
    is_on_path = folder in os.environ.get("PATH", "").split(os.pathsep)
    return name.removesuffix(".exe") if is_on_path else typed
