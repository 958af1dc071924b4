"""`call`, `list`, `read` and `prompt` with a server as the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
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
from ..dialects import shape_of
from ..errors import ToolError
from ..server.process import Stdout
from .call import UnreadableArgument, read_content, read_value
from .program import WrongOption, printable, printable_line, write_json, write_stderr, write_stdout
from .readable_reply import print_prompt
from .reply_output import first_items, print_error, print_reply
from .terminal_peer import TerminalPeer, stderr_is_terminal
from .tool_help import section, usage_table

if TYPE_CHECKING:
    from ..client.blocking import BlockingServer
    from ..client.results import ListedEntry, RemoteResource, RemoteTemplate
    from .program import Options, ServerTarget


_FOR_URL = ("header", "token", "transport")
_FOR_COMMAND = ("env", "inherit_env")
_FOR_ONE = ("header", "token", "transport", "env")
_MAX_CHOICES = 30


def call_remote(
    target: ServerTarget, words: Sequence[str], options: Options, out: Stdout, stdin: int
) -> int:
    """Call a server's tool, and print its reply the way `call` does."""
    with _server(target, options, stdin) as server:
        tools = {tool.name: tool for tool in server.tools()}
        if not words or ("=" in words[0] and words[0] not in tools):
            write_stderr(f"error: name the tool to call\n\n{tool_table(tools.values())}")
            return 2
        name, *pairs = words
        if options.help and name in tools:
            write_stdout(out, f"{printable(tool_help_text(tools[name]))}\n".encode())
            return 0
        arguments = read_tool_arguments(tools.get(name), pairs, options.json, stdin)
        reply = arguments if isinstance(arguments, Reply) else server.call(name, arguments)
        _note_failures(server)
    if not out.is_terminal:
        # On a terminal, the reply's text already says what the server left out.
        for cut in reply.cuts:
            unit = f"{cut.unit} of {cut.path}" if cut.path else cut.unit
            write_stderr(f"note: the server sent {cut.returned:,} of {cut.total:,} {unit}")
    return _print(reply, options, out, limit=options.limit)


def read_remote(target: ServerTarget, options: Options, out: Stdout, stdin: int) -> int:
    with _server(target, options, stdin) as server:
        reply = server.read(options.uri)
        _note_failures(server)
    return _print(reply, options, out, as_file=True)


def prompt_remote(target: ServerTarget, options: Options, out: Stdout, stdin: int) -> int:
    arguments = dict(read_pairs(options.pairs, stdin))
    with _server(target, options, stdin) as server:
        try:
            filled = server.prompt(options.name, arguments)
        except ToolError as exc:
            error = Error(exc.code, exc.message, exc.details, hint=exc.hint)
            return print_error(Reply(error=error), error, STANDARD)
    roles = [message.role for message in filled.messages]
    blocks = [message.content for message in filled.messages]
    return print_prompt(roles, blocks, filled.description, out)


def list_remote(target: ServerTarget, options: Options, out: Stdout) -> int:
    """List a server's tools, resources and prompts, or one of the three."""
    with _server(target, options, 0) as server:
        if options.json:
            write_json(out, _json_list(server, options))
        else:
            for text in _lists(server, options):
                write_stdout(out, f"{printable(text)}\n".encode())
        _note_failures(server)
    return 0


def _lists(server: BlockingServer, options: Options) -> Iterator[str]:
    """Yield the tables one by one, because a server may list its tools but fail on the rest."""
    if options.resources:
        yield usage_table(_resource_rows(server)) or "the server has no resources"
    elif options.prompts:
        yield usage_table(_prompt_rows(server)) or "the server has no prompts"
    else:
        yield tool_table(server.tools())
        # With several servers, any of them may have resources or prompts.
        facts = server.info.values() if isinstance(server.info, dict) else [server.info]
        for noun, rows in (("resources", _resource_rows), ("prompts", _prompt_rows)):
            try:
                is_offered = any(each.offers(noun) for each in facts)
                table = section(noun, rows(server)) if is_offered else ""
            except ToolError as exc:
                write_stderr(f"note: the {noun} cannot be listed: {exc}".replace("\n", "\n  "))
                continue
            if table:
                yield f"\n{table}"


def _resource_rows(server: BlockingServer) -> list[tuple[str, str]]:
    return [(uri, _summary(each)) for uri, each in _resources(server).items()]


def _resources(server: BlockingServer) -> dict[str, RemoteResource | RemoteTemplate]:
    found: dict[str, RemoteResource | RemoteTemplate] = {
        each.uri: each for each in server.resources()
    }
    return found | {each.uri_template: each for each in server.templates()}


def _prompt_rows(server: BlockingServer) -> list[tuple[str, str]]:
    return [(prompt_usage(each), _summary(each)) for each in server.prompts()]


def _summary(entry: ListedEntry) -> str:
    text = str(entry.description or entry.title or getattr(entry, "name", ""))
    return text.strip().partition("\n")[0]


def _json_list(server: BlockingServer, options: Options) -> bytes:
    entries: Iterable[Any]
    if options.resources:
        entries = _resources(server).values()
    else:
        entries = server.prompts() if options.prompts else server.tools()
    members = [
        {name: value for name, value in msgspec.to_builtins(entry).items() if value is not None}
        for entry in entries
    ]
    return msgspec.json.format(msgspec.json.encode(members), indent=2)


@contextmanager
def _server(target: ServerTarget, options: Options, stdin: int) -> Iterator[BlockingServer]:
    """Open the connection; on a terminal, show the server's progress and questions.

    Raises WrongOption or BadTarget.
    """
    peer = TerminalPeer(stdin)
    found = chosen_servers(target, options)
    # A command lists entries only once, so it waits for every server in the file.
    more: dict[str, Any] = {"inherit": bool(options.inherit_env), "wait": None}
    if options.timeout is not None:
        more |= {"timeout": options.timeout, "connect_timeout": options.timeout}
    if options.server_log:
        more |= {"on_log": peer.notify, "stderr": peer.show_line}
    if not isinstance(target, list):
        from .terminal_login import terminal_login

        more["auth"] = terminal_login(target, stdin)
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
            yield server
        finally:
            peer.clear_progress()


def _note_failures(server: BlockingServer) -> None:
    for text in server.failures.values():
        write_stderr(f"note: {text}".replace("\n", "\n  "))


def _print(
    reply: Reply[Any],
    options: Options,
    out: Stdout,
    *,
    limit: int | None = None,
    as_file: bool = False,
) -> int:
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
    reply = first_items(reply, limit)
    shape = reply.shape or shape_of(reply)
    return print_reply(reply, shape, STANDARD, options, out, as_file=as_file)


def _is_one_of(block: Block, shown: tuple[Any, Any]) -> bool:
    """Return whether a text block repeats the data, verbatim or as JSON."""
    if not isinstance(block, Text):
        return False
    try:
        return block.text == shown[0] or msgspec.json.decode(block.text) in shown
    except ValueError:
        return False


def chosen_servers(target: ServerTarget, options: Options) -> ServerEntry | ServerTarget:
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


def tool_table(tools: Iterable[RemoteTool]) -> str:
    rows = [(_usage(tool), (tool.description or "").strip().partition("\n")[0]) for tool in tools]
    return usage_table(rows) if rows else "the server has no tools"


def prompt_usage(prompt: RemotePrompt) -> str:
    """Return the prompt's usage line, such as `greet name=TEXT [style=TEXT]`."""
    given = prompt.arguments if isinstance(prompt.arguments, list | tuple) else ()
    words = [
        f"{each['name']}=TEXT" if each.get("required") else f"[{each['name']}=TEXT]"
        for each in given
        if isinstance(each, dict) and "name" in each
    ]
    return " ".join([prompt.name, *words])


def tool_help_text(tool: RemoteTool) -> str:
    schema = msgspec.json.format(msgspec.json.encode(tool.input_schema), indent=2).decode()
    parts = (printable_line(_usage(tool)), tool.description, schema)
    return "\n\n".join(each for each in parts if each)


def _usage(tool: RemoteTool) -> str:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    required = schema.get("required") or ()
    words = [
        f"{name}={_type_word(field)}" if name in required else f"[{name}={_type_word(field)}]"
        for name, field in _fields(tool).items()
    ]
    return " ".join([tool.name, *words])


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


def read_tool_arguments(
    tool: RemoteTool | None, pairs: Sequence[str], given: str | None, stdin: int
) -> JsonObject | Reply[Any]:
    """Read the arguments; a value is parsed as JSON unless the schema allows only strings."""
    found: JsonObject = {}
    if given is not None:
        try:
            found = msgspec.json.decode(read_content(given, stdin), type=dict[str, Any])
        except msgspec.DecodeError as exc:
            return failure(f"--json is not a JSON object: {exc}", "INVALID_JSON")
    fields = {} if tool is None else _fields(tool)
    return found | {name: _value(text, fields.get(name)) for name, text in read_pairs(pairs, stdin)}


def read_pairs(words: Sequence[str], stdin: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each `name=value` word."""
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UnreadableArgument(f"{word!r} is not name=value")
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
