"""`call`: calls one tool from the shell.

`read` and `prompt` share its argument parsing and its `--user` option.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from itertools import takewhile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.call import Call
from ..calls.failures import invalid_arguments
from ..core.reply import Reply, failure
from ..errors import INVALID_JSON, AnswerbackError, ToolError
from ..registry.declarations import registry_of
from ..server.memory import HandlerName, call_once
from ..server.process import take_stdin, take_stdout
from ..tools.tool import Tool
from ..types.json_text import load
from ..types.problems import InvalidArguments, InvalidJson
from .program import (
    SERVER_OPTIONS,
    NoSuchTarget,
    Program,
    WrongOption,
    add_repeatable,
    add_server_options,
    add_tag_options,
    printable,
    refuse_server_options,
    write_stderr,
    write_stdout,
)
from .reply_output import add_output_options, check_output, first_items, print_error, print_reply
from .terminal_peer import TerminalPeer

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App
    from .program import Options, ServerTarget


_CALL_OPTIONS = ("help", "json", "dialect", "output", "limit", "user", "scope")
_VALUES_HELP = """\
Values are parsed according to the argument's type: x=7 tags=a,b when=2026-01-31 loud=yes
name=@file reads the value from a file, name=- from stdin; name=@@x means the text @x.
For a list, the file has one item per line, or is JSON.
NAME --help shows a tool's arguments.

Output is text on a terminal, and JSON in a pipe or a file. Errors go to stderr.

If a URL requires a login and you are at a terminal, the login page opens in your browser. The
tokens are stored in answerback/logins.json in your settings folder."""
_SHOWN_BESIDE_ERROR = 30


class UnreadableArgument(AnswerbackError):
    """An argument is not `name=value` in UTF-8, or its file or stdin cannot be read."""

    code = "CANNOT_READ"


class NotATool(ToolError):
    """The name belongs to a prompt or a resource."""

    code = kind = "TOOL_NOT_FOUND"


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _options(program, arguments)
    words: list[str] = options.words
    target = words.pop(0) if program.app is None and words else None
    if options.help and not words:
        _parser(program).print_help()
        return 0
    if program.app is None and target is None:
        _parser(program).error("name the tool's file first, such as calculator.py")
    server = _find_server(program, target, words)
    if server is None:
        refuse_server_options(options)
    check_output(options)
    # Do this before loading the author's module, which may itself read stdin or print.
    out, stdin = take_stdout(), take_stdin()
    if server is not None:
        from .remote import call_remote

        return call_remote(server, words, options, out, stdin)
    app = program.load_tagged(target, options)
    if not words or ("=" in words[0] and words[0] not in app.tools):
        from .list import list_tools

        write_stderr(f"error: name the tool to call\n\n{list_tools(app)}")
        return 2
    name, *pairs = words
    name = name.encode("utf-8", "replace").decode()
    if options.help and name in app.tools:
        from .tool_help import tool_help

        text = tool_help(app.tools[name], program.command_line("call", target))
        write_stdout(out, f"{printable(text)}\n".encode())
        return 0
    if name not in app.tools:
        registry = registry_of(app)
        others = (("prompt", "prompt", registry.prompts), ("resource", "read", registry.resources))
        for kind, command, table in others:
            if name in table:
                line = program.command_line(command, target)
                raise NotATool(f"{name!r} is a {kind}, not a tool; write: {line} {name}")
    given = read_arguments(app.tools.get(name), pairs, options.json, stdin)
    reply = given if isinstance(given, Reply) else call_as_user(app, name, given, options, stdin)
    if reply.error is not None:
        list_command = program.command_line("list", target)
        advice = None if name in app.tools else f"`{list_command}` shows the tools"
        return print_error(reply, reply.error, app.contract, options.dialect, advice)
    shape = reply.shape or app.tools[name].shape
    reply = first_items(reply, options.limit)
    return print_reply(reply, shape, app.contract, options, out)


def _options(program: Program, arguments: Sequence[str]) -> Options:
    """Parse the options; if there are none, skip argparse, which is slow to import."""
    if not any(each.startswith("-") for each in arguments):
        none = dict.fromkeys((*_CALL_OPTIONS, *SERVER_OPTIONS))
        return SimpleNamespace(words=[*arguments], tag=[], exclude_tag=[], **none)
    parser = _parser(program)
    if arguments[-1] == "--json":
        parser.error(
            "--json needs the arguments as a JSON object, such as --json '{\"x\": 7}'; "
            "to get the reply as JSON, add | cat at the end"
        )
    options, unknown = parser.parse_known_intermixed_args([*arguments])
    if unknown:
        flag = unknown[0].partition("=")[0]
        name = flag.lstrip("-") or "x"
        parser.error(f"{flag} is not an option; write an argument as {name}=value")
    return options


def _parser(program: Program) -> ArgumentParser:
    from argparse import SUPPRESS

    parser = program.parser("call", "NAME [argument=value …] [options]", add_help=False)
    parser.description = f"{parser.description}\n\n{_VALUES_HELP}"
    parser.add_argument("words", nargs="*", help=SUPPRESS)
    parser.add_argument("-h", "--help", action="store_true", help="show this help, or a tool's own")
    parser.add_argument("--json", metavar="OBJECT", help="the arguments as JSON, @file or -")
    add_output_options(parser)
    text = "print the first N items of a list"
    parser.add_argument("--limit", metavar="N", type=_count, help=text)
    add_user_options(parser)
    add_tag_options(parser)
    add_server_options(parser, program)
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"{text!r} should be a whole number of at least 1")
    return int(text[:9])


def _find_server(program: Program, target: str | None, words: Sequence[str]) -> ServerTarget | None:
    """Return the server; raises NoSuchTarget, with advice if the target could be a tool's name."""
    has_name = bool(words) and "=" not in words[0]
    try:
        server = program.find_server(target)
    except NoSuchTarget as exc:
        if has_name:
            raise
        line = program.command_line("call", in_quotes("calculator.py", target or "", *words))
        raise NoSuchTarget(exc.reason, f"name the tool's file first: {line}") from None
    if isinstance(server, list) and len(server) == 1 and has_name and words[0].endswith(".py"):
        command = f"{target} {words[0]} mcp"
        raise NoSuchTarget(
            f"{words[0]!r} is a file, not a tool", f"put quotes around a command: {command!r}"
        )
    if isinstance(server, list) and len(server) == 1 and not has_name:
        # If the user forgot the target, this would run any program that has the tool's name.
        line = program.command_line("list", target)
        raise NoSuchTarget("name the tool to call", f"`{line}` shows the tools")
    return server


def read_arguments(
    tool: Tool | None, words: Sequence[str], json_option: str | None, stdin: int
) -> bytes | Reply[Any]:
    """Return the argument object as JSON, or the error reply for unknown arguments.

    *json_option* is the whole object; each `name=value` word replaces one argument in it. A value
    of `-` is read from the file descriptor *stdin*.
    """
    if tool is None:
        return b"{}"
    pairs = [_split_word(words, place, tool) for place in range(len(words))]
    if [json_option, *(text for _, text in pairs)].count("-") > 1:
        raise UnreadableArgument("only one argument can be read from stdin")
    whole = b"{}"
    if json_option is not None:
        # Windows puts a byte order mark at the start of text files.
        whole = read_content(json_option, stdin).removeprefix(codecs.BOM_UTF8)
        if error := _json_error(whole):
            from_file = json_option == "-" or json_option.startswith("@")
            source = f"--json {json_option}" if from_file else "--json"
            return failure(f"{source} is not JSON: {error}", code=INVALID_JSON)
    if not pairs:
        return whole
    try:
        values = [(name, read_value(text, stdin)) for name, text in pairs]
        named = tool.from_strings(values)
    except InvalidArguments as exc:
        return Reply(error=invalid_arguments(exc))
    try:
        members = msgspec.json.decode(whole, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        # The pipeline rejects JSON that is not an object, as it does on every wire.
        return whole
    return msgspec.json.encode(members | named)


def _split_word(words: Sequence[str], place: int, tool: Tool) -> tuple[str, str]:
    """Return the name and the value of the word at *place*."""
    word = words[place]
    # File names can contain arbitrary bytes.
    if "=@" not in word:
        try:
            word.encode()
        except UnicodeEncodeError:
            message = f"{word!r} is not UTF-8; pass such content as name=@file"
            raise UnreadableArgument(message) from None
    name, equals, text = word.partition("=")
    if not equals or not name:
        advice = _naming_advice(words, place, tool)
        raise UnreadableArgument(f"{word!r} is not name=value; {advice}")
    return name, text


def _naming_advice(words: Sequence[str], place: int, tool: Tool) -> str:
    """Say what to write instead of the word at *place*, which is not name=value."""
    word, names = words[place], tool.argument_names
    later = list(takewhile(lambda each: "=" not in each, words[place + 1 :]))
    if word in names:
        return f"write {word}={in_quotes(later[0]) if later else 'VALUE'}"
    value = in_quotes(word.removeprefix("="))
    is_free = tool.signature.argument_object is not None
    given = [each.partition("=")[0] for each in words[:place]]
    unused = [each for each in names if each not in given] or (["NAME"] if is_free else [])
    if given:
        # A shell splits text=Buy two into two words.
        last_text = words[place - 1].partition("=")[2]
        whole = in_quotes(" ".join([last_text, word, *later]))
        quoted = f"{given[-1]}={whole} if it belongs to {given[-1]}"
        return f"write {quoted}" + (f", or {unused[0]}={value}" if unused else "")
    return f"write {unused[0]}={value}" if unused else f"{tool.name} takes no arguments"


def in_quotes(*words: str) -> str:
    """Return the words as typed in a shell, quoted where needed."""
    import shlex

    return shlex.join(words)


def read_value(text: str, stdin: int) -> str | bytes:
    """Return the value itself, or the content of the file or stdin that it names."""
    if text.startswith("@@"):
        return text[1:]
    return read_content(text, stdin) if text == "-" or text.startswith("@") else text


def read_content(text: str, stdin: int) -> bytes:
    """Return the content of stdin for `-` or of a file for `@file`; otherwise the text's bytes."""
    if text == "-":
        return _read_bytes(stdin, "stdin")
    if text.startswith("@"):
        return _read_bytes(text[1:], text[1:])
    return os.fsencode(text)


def _read_bytes(source: str | int, name: str) -> bytes:
    try:
        with open(source, "rb", closefd=isinstance(source, str)) as file:
            return file.read()
    except OSError as exc:
        raise UnreadableArgument(f"cannot read {name}: {exc.strerror}") from None


def _json_error(text: bytes) -> str | None:
    """Return a JSON syntax error's reason, position and line; None if the text is valid JSON."""
    try:
        load(text)
        return None
    except InvalidJson as exc:
        without_position = str(exc)
    except msgspec.ValidationError:
        # A number too large for the decoder is still valid JSON.
        return None
    # Python's own parser reports the position. It is imported here because only errors need it,
    # and it would slow down every call.
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        reason = exc.msg[:1].lower() + exc.msg[1:]
        [line] = exc.doc.splitlines()[exc.lineno - 1 : exc.lineno] or [""]
        column = exc.colno - 1
        start, end = max(column - _SHOWN_BESIDE_ERROR, 0), column + _SHOWN_BESIDE_ERROR
        head, tail = "…" if start else "", "…" if end < len(line) else ""
        # A tab may be several columns wide, which would misplace the caret.
        shown = line[start:end].replace("\t", " ")
        caret = " " * (len(head) + column - start) + "^"
        return f"{reason} at line {exc.lineno}, column {exc.colno}\n{head}{shown}{tail}\n{caret}"
    except (ValueError, RecursionError):
        # The text is not UTF-8, or is nested too deeply.
        pass
    return without_position


def add_user_options(parser: ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="act as this user, for tools with gates")
    add_repeatable(parser, "--scope", "SCOPE", "a scope the user has")


def call_as_user(
    app: App,
    name: str,
    arguments: bytes,
    options: Options,
    stdin: int,
    handler: HandlerName = "tools",
) -> Reply[Any]:
    """Call one of the app's entries as `--user`; show questions and progress on the terminal."""
    if options.scope and options.user is None:
        raise WrongOption("--scope needs --user")
    peer = TerminalPeer(stdin)
    call = Call(name, arguments, peer, wire="call")
    if options.user is not None:
        from ..core.authentication import User

        # Use the app's issuer, so that the gates' links are for the user who logs in there.
        issuer = "" if app.auth is None else app.auth.issuer
        call.user = User(subject=options.user, issuer=issuer, scopes=frozenset(options.scope))
    try:
        reply = call_once(registry_of(app), call, handler)
    finally:
        peer.clear_progress()
    if reply.error is None or call.challenge is None:
        return reply
    # A gate refused the call, so the hint names the options that it requires.
    missing = [] if options.user is not None else ["--user NAME"]
    given = options.scope or ()
    missing += [f"--scope {each}" for each in call.challenge.scopes if each not in given]
    if not missing:
        return reply
    hint = f"act as a user: add {' '.join(missing)}"
    return msgspec.structs.replace(reply, error=msgspec.structs.replace(reply.error, hint=hint))
