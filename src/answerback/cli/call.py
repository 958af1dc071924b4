"""`call`: calls one tool from the shell.

An App as a target is here too, so that `call`, which programs start often, loads no other module.
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
from ..core.author_errors import did_you_mean, similar_names
from ..core.reply import Reply, failure
from ..core.shape import BARE
from ..errors import INVALID_JSON, TOOL_NOT_FOUND, AnswerbackError, NotFound, ToolError
from ..registry.declarations import registry_of
from ..server.memory import HandlerName, call_once
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
    require_widgets,
    write_note,
    write_stderr,
    write_stdout,
    wrong_type,
)
from .reply_output import add_output_options, check_output, first_items, print_reply
from .terminal_peer import TerminalPeer

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from ..app import App
    from ..registry.declarations import ListedKind
    from .program import Options, ServerAddress


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


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _options(program, arguments)
    words: list[str] = options.words
    options.target = words.pop(0) if program.app is None and words else None
    if options.help and not words:
        _parser(program).print_help()
        return 0
    if program.app is None and options.target is None:
        _parser(program).error("name the tool's file first, such as calculator.py")
    server = _find_server(program, options.target, words)
    check_output(options)
    with program.open(server, options) as (target, out):
        if not words or ("=" in words[0] and words[0] not in target.tools):
            from .tool_help import table

            write_stderr(f"error: name the tool to call\n\n{table(target, 'tools')}")
            return 2
        name, *pairs = words
        name = name.encode("utf-8", "replace").decode()
        is_known = name in target.tools
        if options.help and is_known:
            write_stdout(out, f"{printable(target.tool_help(name))}\n".encode())
            return 0
        reply = target.call(name, pairs)
    reply = first_items(reply, options.limit)
    advice = None if is_known else target.advice("tools")
    return print_reply(reply, target.contract, options, out, advice=advice)


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
    add_target_options(parser, program)
    return parser


def add_target_options(parser: ArgumentParser, program: Program) -> None:
    """Add the options of `call`, `read` and `prompt` that depend on the target."""
    parser.add_argument("--user", metavar="NAME", help="act as this user, for tools with gates")
    add_repeatable(parser, "--scope", "SCOPE", "a scope the user has")
    add_tag_options(parser)
    add_server_options(parser, program)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:9]) > 0):
        raise wrong_type(f"{text!r} should be a whole number of at least 1")
    return int(text[:9])


def _find_server(
    program: Program, target: str | None, words: Sequence[str]
) -> ServerAddress | None:
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


class AppTarget:
    """The App; its tools run in this process, as `--user`."""

    def __init__(self, program: Program, app: App, options: Options, stdin: int) -> None:
        self._program = program
        self._app = app
        self._registry = registry_of(app)
        self._options = options
        self._stdin = stdin
        self.name = self._registry.name
        self.contract = app.contract
        self.tools = app.tools

    def rows(self, kind: ListedKind, *, alone: bool) -> list[tuple[str, str]]:
        from .tool_help import usage

        require_widgets(self._app)
        if kind == "resources":
            # A widget's page is for hosts; it is mentioned on its tool's line.
            found = self._registry.resources.values()
            return [(each.uri, _summary(each)) for each in found if alone or not each.is_widget]
        return [(usage(each), _summary(each)) for each in self._registry.tables[kind].values()]

    def entries(self, kind: ListedKind) -> bytes:
        from ..core.versions import LATEST_STATEFUL
        from ..protocol.listing import prompt_entry, resource_entry
        from ..server.http.routes import function_list

        require_widgets(self._app)
        if kind == "tools":
            return function_list(self._registry)
        entry = prompt_entry if kind == "prompts" else resource_entry
        found = self._registry.tables[kind].values()
        return msgspec.json.encode([entry(each, LATEST_STATEFUL) for each in found])

    def write_notes(self) -> None:
        # Nothing else tells the author which tools have no return annotation.
        names = [
            name
            for name, tool in self.tools.items()
            if tool.settings.output_schema is None
            and "return" not in tool.source.function.__annotations__
        ]
        if names and not self._options.json:
            have = "has" if len(names) == 1 else "have"
            write_note(
                f"{', '.join(names)} {have} no return type, so callers get no output schema; "
                "write -> and the type"
            )

    def tool_help(self, name: str) -> str:
        from .tool_help import tool_help

        return tool_help(self.tools[name], self._command_line("call"))

    def advice(self, kind: ListedKind) -> str:
        line = self._command_line("list")
        return f"`{line}` shows the tools" if kind == "tools" else f"`{line} --{kind}` shows them"

    def call(self, name: str, words: Sequence[str]) -> Reply[Any]:
        tool = self.tools.get(name)
        if tool is None:
            for kind, command in (("prompt", "prompt"), ("resource", "read")):
                if name in self._registry.tables[f"{kind}s"]:
                    line = self._command_line(command)
                    message = f"{name!r} is a {kind}, not a tool; write: {line} {name}"
                    raise ToolError(message, TOOL_NOT_FOUND)
        given = _read_arguments(tool, words, self._options.json, self._stdin)
        reply = given if isinstance(given, Reply) else self._run("tools", name, given)
        if tool is None or reply.shape is not None or reply.error is not None:
            return reply
        return msgspec.structs.replace(reply, shape=tool.shape)

    def read(self, uri: str) -> Reply[Any]:
        from ..protocol.listing import find_resource
        from ..tools.resource import contents_of

        try:
            found = find_resource(self._registry, uri, None)
        except InvalidArguments as exc:
            return Reply(error=invalid_arguments(exc))
        if found is None:
            return failure(f"Resource not found: {uri}", NotFound.code)
        resource, arguments = found
        reply = self._run("resources", resource.uri, arguments)
        if reply.error is not None:
            return reply
        contents = tuple(contents_of(resource, uri, reply))
        return msgspec.structs.replace(
            reply, content=contents, data=msgspec.UNSET, encoded=None, shape=BARE
        )

    def prompt(self, name: str, words: Sequence[str]) -> Reply[Any]:
        prompts = self._registry.prompts
        if name not in prompts:
            hint = did_you_mean(similar_names(name, prompts))
            return failure(f"Prompt not found: {name}", NotFound.code, hint=hint or None)
        given = _read_arguments(prompts[name], words, None, self._stdin)
        reply = (
            given if isinstance(given, Reply) else self._run("prompts", prompts[name].name, given)
        )
        if reply.error is not None:
            return reply
        # The reply has one block per message, and the roles are in its meta.
        meta = {**reply.meta, "description": prompts[name].description}
        return msgspec.structs.replace(reply, meta=meta)

    def _command_line(self, command: str) -> str:
        return self._program.command_line(command, self._options.target)

    def _run(self, handler: HandlerName, name: str, arguments: bytes) -> Reply[Any]:
        """Call an entry as `--user`; show questions and progress on the terminal."""
        options = self._options
        if options.scope and options.user is None:
            raise WrongOption("--scope needs --user")
        peer = TerminalPeer(self._stdin)
        call = Call(name, arguments, peer, wire="call")
        if options.user is not None:
            from ..core.authentication import User

            # Use the app's issuer, so that the gates' links are for the user who logs in there.
            issuer = "" if self._app.auth is None else self._app.auth.issuer
            call.user = User(subject=options.user, issuer=issuer, scopes=frozenset(options.scope))
        try:
            reply = call_once(self._registry, call, handler)
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


def _summary(tool: Tool) -> str:
    """Return the description's first line, the widget that shows the reply, and the gates."""
    summary = tool.description.partition("\n")[0]
    if tool.settings.widget is not None:
        summary += f" (widget: {tool.settings.widget})"
    if tool.gates is not None:
        from ..tools.requires import BuiltinGate

        names = [
            gate.label
            if isinstance(gate, BuiltinGate)
            else getattr(gate, "__name__", type(gate).__name__)
            for gate in tool.gates.declared
        ]
        summary += f" (requires {', '.join(names)})"
    return summary.lstrip()


def _read_arguments(
    tool: Tool | None, words: Sequence[str], json_option: str | None, stdin: int
) -> bytes | Reply[Any]:
    """Return the argument object as JSON, or the error reply for unknown arguments.

    *json_option* is the whole object; each `name=value` word replaces one argument in it. A value
    of `-` is read from the file descriptor *stdin*.
    """
    if tool is None:
        return b"{}"
    pairs: list[tuple[str, str]] = []
    for place, word in enumerate(words):
        pair = split_word(word)
        if pair is None:
            advice = _naming_advice(words, place, tool)
            raise UnreadableArgument(f"{word!r} is not name=value; {advice}")
        pairs.append(pair)
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


def split_word(word: str) -> tuple[str, str] | None:
    """Return the name and the value of `name=value`; None if the word is something else."""
    name, equals, text = word.partition("=")
    # File names can contain arbitrary bytes; @@ begins a text.
    is_file = text.startswith("@") and not text.startswith("@@")
    if not is_utf8(name if is_file else word):
        raise UnreadableArgument(f"{word!r} is not UTF-8; pass such content as name=@file")
    return (name, text) if equals and name else None


def is_utf8(text: str) -> bool:
    """Return False for an argument with other bytes, which no wire can send as text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


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
