"""The calls of `types --call`: only of tools that say that they are read-only."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..app import App
from ..client.connecting import connect
from ..inference.recorded_replies import RecordedReply
from ..inference.reply_data import data_of
from .program import Options, ServerTarget, printable_line, write_stderr
from .server_connection import connection
from .terminal_peer import TerminalPeer

if TYPE_CHECKING:
    from ..client.listed import RemoteTool


def call_read_only(
    target: App | ServerTarget, options: Options, only: Collection[str] | None
) -> Iterator[RecordedReply]:
    """Call the tools that are safe to call, and yield their replies; raises ConnectError.

    Without *only*, all tools may be called.
    """
    opened: AbstractContextManager[Any]
    if isinstance(target, App):
        opened = connect(target)
    else:
        opened = connection(target, options, TerminalPeer(0))
    with opened as server:
        for tool in server.tools():
            if only is not None and tool.name not in only:
                continue
            examples = _examples(target, tool.name)
            if why := _why_not(tool, examples):
                write_stderr(f"{printable_line(tool.name)}: not called, because {why}")
                continue
            for number, arguments in enumerate(examples or [{}], 1):
                reply = server.call(tool.name, arguments)
                found = data_of(reply, tool.output_schema)
                yield RecordedReply(tool.name, found, f"call {number} of {tool.name}")


def _examples(target: App | ServerTarget, name: str) -> list[Mapping[str, Any]]:
    """Return the arguments that an App's author gave as examples."""
    if not isinstance(target, App) or name not in target.tools:
        return []
    return list(target.tools[name].settings.examples)


def _why_not(tool: RemoteTool, examples: list[Mapping[str, Any]]) -> str:
    """Return why a tool is not called; empty if it is."""
    hints = tool.annotations if isinstance(tool.annotations, dict) else {}
    if hints.get("readOnlyHint") is not True:
        return "it does not say that it is read-only"
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    if schema.get("required") and not examples:
        return "it needs arguments"
    return ""
