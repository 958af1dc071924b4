"""`call` and `list` with a server as the target: a command, a URL, or a host's `mcp.json`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..client.connecting import connect
from ..client.user_handlers import ElicitationRequest
from ..contract import STANDARD, Dialect
from ..core.content import Block, Text
from ..core.peer import NeedsInput, Question
from ..core.reply import Error, Reply, failure
from ..dialects import shape_of, write
from ..server.standard_streams import Stdout
from .call import print_success
from .call_arguments import UnreadableArgument, read_content, read_value
from .program import (
    printable,
    printable_json,
    printable_line,
    write_json,
    write_stderr,
    write_stdout,
)
from .readable_reply import error_text
from .terminal_login import login_options
from .terminal_peer import TerminalPeer, stderr_is_terminal
from .tool_help import usage_table

if TYPE_CHECKING:
    from ..client.blocking import BlockingServer
    from ..client.listed import RemoteTool
    from ..core.json_value import Json, JsonObject
    from .program import Options, ServerTarget


def call_remote(
    target: ServerTarget, words: Sequence[str], options: Options, out: Stdout, stdin: int
) -> int:
    """Call a server's tool, and print its reply as `call` does."""
    more = {**_handlers(stdin), **login_options(target, stdin), **_server_options(options)}
    with connect(target, **more) as server:
        tools = {tool.name: tool for tool in server.tools()}
        if not words or ("=" in words[0] and words[0] not in tools):
            write_stderr(f"error: name the tool to call\n\n{_table(tools.values())}")
            return 2
        name, *pairs = words
        if options.help and name in tools:
            write_stdout(out, f"{printable(_help(tools[name]))}\n".encode())
            return 0
        arguments = _arguments(tools.get(name), pairs, options.json, stdin)
        reply = arguments if isinstance(arguments, Reply) else server.call(name, arguments)
        _note_failures(server)
    return _print(reply, options.dialect, out)


def list_remote(target: ServerTarget, options: Options, out: Stdout) -> int:
    """List a server's tools."""
    more = {**login_options(target, stdin=0), **_server_options(options)}
    with connect(target, **more) as server:
        tools = server.tools()
        _note_failures(server)
    if options.json:
        members = [
            {name: value for name, value in msgspec.to_builtins(tool).items() if value is not None}
            for tool in tools
        ]
        write_json(out, msgspec.json.format(msgspec.json.encode(members), indent=2))
    else:
        write_stdout(out, f"{printable(_table(tools))}\n".encode())
    return 0


def _server_options(options: Options) -> dict[str, Any]:
    transport = {} if options.transport is None else {"transport": options.transport}
    # A command has no later list, so it waits for every server of a file.
    return {"inherit": bool(options.inherit_env), "wait": None, **transport}


def _handlers(stdin: int) -> JsonObject:
    """Return handlers with which a user at a terminal can answer the server's questions."""
    peer = TerminalPeer(stdin)
    if not peer.can.elicit:
        return {}

    async def elicit(request: ElicitationRequest) -> object:
        params = {"message": request.message, "requestedSchema": request.schema}
        try:
            return await peer.ask(Question("elicitation/create", params))
        except NeedsInput:
            return None

    return {"elicit": elicit, "elicit_url": False}


def _note_failures(server: BlockingServer) -> None:
    for text in server.failures.values():
        write_stderr(f"note: {text}".replace("\n", "\n  "))


def _table(tools: Any) -> str:
    rows = [(_usage(tool), (tool.description or "").strip().partition("\n")[0]) for tool in tools]
    return usage_table(rows) if rows else "the server has no tools"


def _fields(tool: RemoteTool) -> JsonObject:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _usage(tool: RemoteTool) -> str:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    required = schema.get("required") or ()
    words = [
        f"{name}={_type_word(field)}" if name in required else f"[{name}={_type_word(field)}]"
        for name, field in _fields(tool).items()
    ]
    return " ".join([tool.name, *words])


def _type_word(field: Json) -> str:
    return (_kind(field) or "VALUE").upper()


def _kind(field: Json) -> str | None:
    """Return a value's type, which may also be null; None if there are several or none."""
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


def _help(tool: RemoteTool) -> str:
    schema = msgspec.json.format(msgspec.json.encode(tool.input_schema), indent=2).decode()
    parts = (printable_line(_usage(tool)), tool.description, schema)
    return "\n\n".join(each for each in parts if each)


def _arguments(
    tool: RemoteTool | None, pairs: Sequence[str], given: str | None, stdin: int
) -> JsonObject | Reply[Any]:
    """Read the arguments; a value is JSON if the schema allows more than a string."""
    found: JsonObject = {}
    if given is not None:
        try:
            found = msgspec.json.decode(read_content(given, stdin), type=dict[str, Any])
        except msgspec.DecodeError as exc:
            return failure(f"--json is not a JSON object: {exc}", "INVALID_JSON")
    fields = {} if tool is None else _fields(tool)
    for word in pairs:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UnreadableArgument(f"{word!r} is not name=value")
        value = read_value(text, stdin)
        text = value if isinstance(value, str) else value.decode(errors="replace")
        found[name] = _value(text, fields.get(name))
    return found


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


def _print(reply: Reply[Any], dialect: Dialect | None, out: Stdout) -> int:
    reply = _without_stderr(reply)
    shape = reply.shape or shape_of(reply)
    written = write(reply, dialect or "rest", shape, STANDARD)
    if reply.error is None:
        return print_success(_without_doubled_text(reply), shape, written, dialect, out)
    if dialect is None and stderr_is_terminal():
        write_stderr(error_text(reply.error))
    else:
        members = {**msgspec.json.decode(written.body), "code": reply.error.code}
        if reply.error.hint:
            members.setdefault("hint", reply.error.hint)
        write_stderr(printable_json(msgspec.json.encode(members).decode()))
    return reply.error.row.exit


def _without_stderr(reply: Reply[Any]) -> Reply[Any]:
    """Return the reply without a child process's stderr, which the log has already shown."""
    match reply.error:
        case Error(details={"stderr": _, **details}) as error:
            error = msgspec.structs.replace(error, details=details)
            return msgspec.structs.replace(reply, error=error)
    return reply


def _without_doubled_text(reply: Reply[Any]) -> Reply[Any]:
    """Return the reply without texts that repeat its data, which is shown more readably."""
    if reply.data is msgspec.UNSET:
        return reply
    shown = (reply.data, {"result": reply.data})
    kept = [each for each in reply.content if not _is_one_of(each, shown)]
    return msgspec.structs.replace(reply, content=tuple(kept))


def _is_one_of(block: Block, shown: tuple[Any, Any]) -> bool:
    """Return whether a text repeats the data: the data itself, or its JSON."""
    if not isinstance(block, Text):
        return False
    try:
        return block.text == shown[0] or msgspec.json.decode(block.text) in shown
    except ValueError:
        return False
