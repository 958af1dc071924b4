"""`call`, `list`, `read` and `prompt` with a server as the target."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from ..client.user_handlers import ElicitationRequest
from ..contract import STANDARD
from ..core.content import Block, Text
from ..core.peer import NeedsInput, Question
from ..core.reply import Error, Reply
from ..dialects import shape_of
from ..errors import ToolError
from ..server.standard_streams import Stdout
from .program import printable, write_json, write_stderr, write_stdout
from .prompt_output import print_prompt
from .remote_usage import (
    prompt_usage,
    read_pairs,
    read_tool_arguments,
    tool_help_text,
    tool_table,
)
from .reply_output import first_items, print_error, print_reply
from .server_connection import connection
from .terminal_peer import TerminalPeer, stderr_is_terminal
from .tool_help import section, usage_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..client.blocking import BlockingServer
    from ..client.results import ListedEntry, RemoteResource, RemoteTemplate
    from ..core.json_value import JsonObject
    from .program import Options, ServerTarget


def call_remote(
    target: ServerTarget, words: Sequence[str], options: Options, out: Stdout, stdin: int
) -> int:
    """Call a server's tool, and print its reply as `call` does."""
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
        _note_cuts(reply)
    return _print(reply, options, out, limit=options.limit)


def read_remote(target: ServerTarget, options: Options, out: Stdout, stdin: int) -> int:
    """Read a server's resource, and print its contents."""
    with _server(target, options, stdin) as server:
        reply = server.read(options.uri)
        _note_failures(server)
    return _print(reply, options, out, as_file=True)


def prompt_remote(target: ServerTarget, options: Options, out: Stdout, stdin: int) -> int:
    """Fill in a server's prompt, and print its messages."""
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
    """Yield the tables one by one: a server whose tools can be used may fail in another list."""
    if options.resources:
        yield usage_table(_resource_rows(server)) or "the server has no resources"
    elif options.prompts:
        yield usage_table(_prompt_rows(server)) or "the server has no prompts"
    else:
        yield tool_table(server.tools())
        for noun, rows in (("resources", _resource_rows), ("prompts", _prompt_rows)):
            try:
                table = section(noun, rows(server)) if _declares(server, noun) else ""
            except ToolError as exc:
                write_stderr(f"note: the {noun} cannot be listed: {exc}".replace("\n", "\n  "))
                continue
            if table:
                yield f"\n{table}"


def _declares(server: BlockingServer, noun: str) -> bool:
    """Return whether the server, or one of several, says that it has resources or prompts."""
    facts = server.info.values() if isinstance(server.info, dict) else [server.info]
    return any(each.offers(noun) for each in facts)


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
    entries: Sequence[Any] = server.tools() if not (options.resources or options.prompts) else ()
    if options.resources:
        entries = [*_resources(server).values()]
    if options.prompts:
        entries = server.prompts()
    members = [
        {name: value for name, value in msgspec.to_builtins(entry).items() if value is not None}
        for entry in entries
    ]
    return msgspec.json.format(msgspec.json.encode(members), indent=2)


@contextmanager
def _server(target: ServerTarget, options: Options, stdin: int) -> Iterator[BlockingServer]:
    """Open the connection; on a terminal the server's progress and questions are shown."""
    peer = TerminalPeer(stdin)
    with connection(target, options, peer, **_handlers(peer)) as server:
        if stderr_is_terminal():
            server = server.options(progress=peer.notify)
        try:
            yield server
        finally:
            peer.clear_progress()


def _handlers(peer: TerminalPeer) -> JsonObject:
    """Return handlers with which a user at a terminal can answer the server's questions."""
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


def _note_cuts(reply: Reply[Any]) -> None:
    """Say what the server left out; a person reads it in the reply's text."""
    for cut in reply.cuts:
        where = f" of {cut.path}" if cut.path else ""
        write_stderr(f"note: the server sent {cut.returned:,} of {cut.total:,} {cut.unit}{where}")


def _print(
    reply: Reply[Any],
    options: Options,
    out: Stdout,
    *,
    limit: int | None = None,
    as_file: bool = False,
) -> int:
    reply = first_items(_without_doubled_text(_without_stderr(reply)), limit)
    shape = reply.shape or shape_of(reply)
    return print_reply(reply, shape, STANDARD, options, out, as_file=as_file)


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
