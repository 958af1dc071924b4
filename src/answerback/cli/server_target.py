"""A server at a URL or behind a command, as the target of `call`, `list`, `read` and `prompt`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ..client.connecting import connect
from ..client.results import RemotePrompt, RemoteTool
from ..client.targets import BadTarget, HostContext, ServerEntry, read_target
from ..client.user_handlers import ElicitationRequest
from ..contract import STANDARD
from ..core.author_errors import did_you_mean, similar_names
from ..core.content import Block, Text
from ..core.json_value import Json, JsonObject
from ..core.peer import NeedsInput, Question
from ..core.reply import Error, Reply, failure
from ..errors import ToolError
from ..server.process import Stdout
from .call import UnreadableArgument, read_content, read_value, split_word
from .program import WrongOption, printable_line, usage_line, write_note
from .terminal_peer import TerminalPeer, stderr_is_terminal

if TYPE_CHECKING:
    from ..client.blocking import BlockingServer
    from ..client.results import ListedEntry
    from ..registry.declarations import ListedKind
    from .program import Options, ServerAddress


_FOR_URL = ("header", "token", "transport")
_FOR_COMMAND = ("env", "inherit_env")
_FOR_ONE = ("header", "token", "transport", "env")
_MAX_CHOICES = 30


@contextmanager
def open_server(
    address: ServerAddress, options: Options, out: Stdout, stdin: int
) -> Iterator[ServerTarget]:
    """Open the connection; on a terminal, show the server's progress and questions.

    Raises WrongOption or BadTarget.
    """
    peer = TerminalPeer(stdin)
    found = chosen_servers(address, options)
    # A command lists entries only once, so it waits for every server in the file.
    more: dict[str, Any] = {"inherit": bool(options.inherit_env), "wait": None}
    if options.timeout is not None:
        more |= {"timeout": options.timeout, "connect_timeout": options.timeout}
    if options.server_log:
        more |= {"on_log": peer.notify, "stderr": peer.show_line}
    if not isinstance(address, list):
        from .terminal_login import terminal_login

        more["auth"] = terminal_login(address, stdin)
    if isinstance(found, ServerEntry):
        more |= options_for_one(options)

    async def elicit(request: ElicitationRequest) -> object:
        params = {"message": request.message, "requestedSchema": request.schema}
        try:
            return await peer.ask(Question("elicitation/create", params))
        except NeedsInput:
            return None

    if peer.can.elicit:
        more |= {"elicit": elicit, "elicit_url": False}
    with connect(found, **more) as server:
        if stderr_is_terminal():
            server = server.options(progress=peer.notify)
        try:
            yield ServerTarget(server, options, out, stdin)
        finally:
            peer.clear_progress()


class ServerTarget:
    """The server that `connect` opened; its schemas and texts are untrusted."""

    name = "the server"
    contract = STANDARD

    def __init__(self, server: BlockingServer, options: Options, out: Stdout, stdin: int) -> None:
        self._server = server
        self._options = options
        self._out = out
        self._stdin = stdin

    @cached_property
    def tools(self) -> dict[str, RemoteTool]:
        return {tool.name: tool for tool in self._server.tools()}

    def rows(self, kind: ListedKind, *, alone: bool) -> list[tuple[str, str]]:
        if kind == "tools":
            return [(_tool_usage(each), _summary(each)) for each in self.tools.values()]
        # With several servers, any of them may have resources or prompts.
        info = self._server.info
        facts = info.values() if isinstance(info, dict) else [info]
        if not alone and not any(each.offers(kind) for each in facts):
            return []
        if kind == "prompts":
            return [(_prompt_usage(each), _summary(each)) for each in self._server.prompts()]
        return [(uri, _summary(each)) for uri, each in self._resources().items()]

    def entries(self, kind: ListedKind) -> bytes:
        entries: Iterable[ListedEntry]
        if kind == "resources":
            entries = self._resources().values()
        else:
            entries = self._server.prompts() if kind == "prompts" else self.tools.values()
        found = map(msgspec.to_builtins, entries)
        return msgspec.json.encode(
            [{name: value for name, value in each.items() if value is not None} for each in found]
        )

    def _resources(self) -> dict[str, ListedEntry]:
        found: dict[str, ListedEntry] = {each.uri: each for each in self._server.resources()}
        return found | {each.uri_template: each for each in self._server.templates()}

    def write_notes(self) -> None:
        # In a host's file, some servers may fail; the others can still be used.
        for text in self._server.failures.values():
            write_note(text)

    def tool_help(self, name: str) -> str:
        tool = self.tools[name]
        schema = msgspec.json.format(msgspec.json.encode(tool.input_schema), indent=2).decode()
        parts = (printable_line(_tool_usage(tool)), tool.description, schema)
        return "\n\n".join(each for each in parts if each)

    def advice(self, kind: ListedKind) -> None:
        return None

    def call(self, name: str, words: Sequence[str]) -> Reply[Any]:
        arguments: JsonObject = {}
        if (given := self._options.json) is not None:
            try:
                arguments = msgspec.json.decode(
                    read_content(given, self._stdin), type=dict[str, Any]
                )
            except ValueError as exc:
                reason = "it is not UTF-8" if isinstance(exc, UnicodeDecodeError) else exc
                return failure(f"--json is not a JSON object: {reason}", "INVALID_JSON")
        # A value is parsed as JSON unless the schema allows only strings.
        fields = _fields(self.tools[name]) if name in self.tools else {}
        for key, text in _read_pairs(words, self._stdin):
            arguments[key] = _value(text, fields.get(key))
        reply = self._server.call(name, arguments)
        self.write_notes()
        if not self._out.is_terminal:
            # On a terminal, the reply's text already says what the server left out.
            for cut in reply.cuts:
                unit = f"{cut.unit} of {cut.path}" if cut.path else cut.unit
                write_note(f"the server sent {cut.returned:,} of {cut.total:,} {unit}")
        return _to_show(reply)

    def read(self, uri: str) -> Reply[Any]:
        reply = self._server.read(uri)
        self.write_notes()
        return _to_show(reply)

    def prompt(self, name: str, words: Sequence[str]) -> Reply[Any]:
        try:
            filled = self._server.prompt(name, dict(_read_pairs(words, self._stdin)))
        except ToolError as exc:
            return Reply(error=Error(exc.code, exc.message, exc.details, hint=exc.hint))
        roles = [message.role for message in filled.messages]
        content = tuple(message.content for message in filled.messages)
        return Reply(content=content, meta={"roles": roles, "description": filled.description})


def _to_show(reply: Reply[Any]) -> Reply[Any]:
    """Return the reply without what the user has seen already."""
    match reply.error:
        # The log has already shown a child process's stderr.
        case Error(details={"stderr": _, **details}) as error:
            error = msgspec.structs.replace(error, details=details)
            reply = msgspec.structs.replace(reply, error=error)
    if reply.data is not msgspec.UNSET:
        # The data is more readable than text that repeats it.
        shown = (reply.data, {"result": reply.data})
        content = tuple(each for each in reply.content if not _is_one_of(each, shown))
        reply = msgspec.structs.replace(reply, content=content)
    return reply


def _is_one_of(block: Block, shown: tuple[Any, Any]) -> bool:
    """Return whether a text block repeats the data, verbatim or as JSON."""
    if not isinstance(block, Text):
        return False
    try:
        return block.text == shown[0] or msgspec.json.decode(block.text) in shown
    except ValueError:
        return False


def chosen_servers(target: ServerAddress, options: Options) -> ServerEntry | ServerAddress:
    """Return the selected server; without `--server`, return a file of several unchanged."""
    found = read_target(target)
    if isinstance(found, ServerEntry):
        if options.server is not None:
            raise WrongOption("--server is for a file with several servers")
        _check_fits(found, options)
        return found
    names = ", ".join(found) or "none"
    if options.server is None:
        for flag in _given(_FOR_ONE, options):
            raise WrongOption(f"{flag} is for one server; choose it with --server, from {names}")
        return target
    if options.server not in found:
        advice = did_you_mean(similar_names(options.server, found)) or f"its servers are {names}"
        raise WrongOption(f"there is no server {options.server!r} in {target}; {advice}")
    entry = found[options.server]
    if isinstance(entry, BadTarget):
        raise entry
    _check_fits(entry, options)
    return entry


def _check_fits(entry: ServerEntry, options: Options) -> None:
    if not entry.url:
        for flag in _given(_FOR_URL, options):
            raise WrongOption(f"{flag} is for a URL; pass secrets to a command with --env")
    else:
        for flag in _given(_FOR_COMMAND, options):
            raise WrongOption(f"{flag} is for a command; for a URL, use --token or --header")


def _given(names: Iterable[str], options: Options) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]


def options_for_one(options: Options) -> dict[str, Any]:
    """Return the `connect` options for one server."""
    found: dict[str, Any] = {}
    headers = dict(_pair("--header", text, ":") for text in options.header or ())
    if headers:
        found["headers"] = headers
    if options.env:
        found["env"] = dict(_pair("--env", text, "=") for text in options.env)
    if options.transport is not None:
        found["transport"] = options.transport
    if options.token is not None:
        found["auth"] = _filled("--token", options.token)
    return found


def _pair(option: str, text: str, separator: str) -> tuple[str, str]:
    """Return the name and the value; errors never show the text, which may be a secret."""
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise WrongOption(f"{option} should be NAME{separator}VALUE")
    return name.strip(), _filled(option, value.strip() if separator == ":" else value)


def _filled(option: str, text: str) -> str:
    """Replace `${NAME}` with the environment variable, as in a host's file."""
    try:
        filled: str = HostContext.of({}, None).filled(text)
    except LookupError as exc:
        raise WrongOption(f"{option} {exc.args[0]}") from None
    return filled


def _summary(entry: ListedEntry) -> str:
    text = entry.description or ""
    if not isinstance(entry, RemoteTool):
        text = str(text or entry.title or getattr(entry, "name", ""))
    return text.strip().partition("\n")[0]


def _prompt_usage(prompt: RemotePrompt) -> str:
    given = prompt.arguments if isinstance(prompt.arguments, list | tuple) else ()
    found = {
        str(each["name"]): each.get("required")
        for each in given
        if isinstance(each, dict) and "name" in each
    }
    required = [name for name, is_required in found.items() if is_required]
    return usage_line(prompt.name, dict.fromkeys(found, "TEXT"), required)


def _tool_usage(tool: RemoteTool) -> str:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    kinds = {name: _type_word(field) for name, field in _fields(tool).items()}
    return usage_line(tool.name, kinds, schema.get("required") or ())


def _fields(tool: RemoteTool) -> JsonObject:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _type_word(field: Json) -> str:
    match field:
        case {"enum": [*values]} if all(isinstance(each, str) for each in values):
            choices = "|".join(values)
            return choices if len(choices) <= _MAX_CHOICES else "TEXT"
    kind = _kind(field)
    return "TEXT" if kind == "string" else (kind or "VALUE").upper()


def _kind(field: Json) -> str | None:
    """Return a value's type, ignoring null; None if there are several types or none."""
    match field:
        case {"type": str(kind)}:
            return kind
        case {"type": list(kinds)}:
            found = {each for each in kinds if isinstance(each, str)}
        case {"anyOf": list(branches)} | {"oneOf": list(branches)}:
            found = {str(each.get("type")) for each in branches if isinstance(each, dict)}
        case _:
            return None
    found.discard("null")
    return found.pop() if len(found) == 1 and "None" not in found else None


def _read_pairs(words: Sequence[str], stdin: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each `name=value` word."""
    for word in words:
        pair = split_word(word)
        if pair is None:
            raise UnreadableArgument(f"{word!r} is not name=value")
        name, text = pair
        value = read_value(text, stdin)
        yield name, value if isinstance(value, str) else value.decode(errors="replace")


def _value(text: str, field: Json) -> Json:
    kind = _kind(field)
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("yes", "no", "on", "off"):
        return text.lower() in ("yes", "on")
    try:
        return msgspec.json.decode(text)
    except ValueError:
        pass
    return text.split(",") if kind == "array" else text
