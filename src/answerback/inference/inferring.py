"""Collects the replies of each tool, and infers their types."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ..core.json_value import Json
from .evidence import Evidence, ReplyCounter
from .inferred_types import infer_type
from .python_source import ToolType
from .recorded_replies import RecordedReply
from .type_names import merge_equal, name_records


class Seen(msgspec.Struct):
    """The replies of one tool so far."""

    evidence: Evidence
    replies: int = 0
    """Those with data or a text, from which the type is inferred."""
    failures: int = 0
    other: int = 0
    """Those with other content only, such as an image."""


class SeenReplies:
    """The replies of all tools so far; *dicts* are the tools that return a dict."""

    def __init__(self, dicts: Collection[str] = ()) -> None:
        self._dicts = dicts
        self.tools: dict[str, Seen] = {}
        self._counter = ReplyCounter()

    def add(self, recorded: RecordedReply) -> None:
        """Count a reply; after too many tools, those with new names are left out."""
        seen = self.tools.get(recorded.tool)
        if seen is None:
            if not self._counter.take_place():
                return
            seen = self.tools[recorded.tool] = Seen(Evidence())
        match recorded.found.kind:
            case "data" | "text":
                seen.replies += 1
                self._counter.reply += 1
                seen.evidence.add(self._value(recorded), self._counter)
            case "content":
                seen.other += 1
            case "failure":
                seen.failures += 1

    def _value(self, recorded: RecordedReply) -> Json:
        found = recorded.found
        is_own = recorded.tool in self._dicts and found.wrapper is not msgspec.UNSET
        return found.wrapper if is_own else found.value

    def types(
        self, tools: Collection[str] | None = None, taken: Collection[str] = ()
    ) -> list[ToolType]:
        """Return the types of all tools, or of some, in the order of their names.

        *taken* names are not given to classes.
        """
        seen = {
            tool: each
            for tool, each in self.tools.items()
            if each.replies and (tools is None or tool in tools)
        }
        types = merge_equal({tool: infer_type(tool, each.evidence) for tool, each in seen.items()})
        name_records(types, taken)
        return [ToolType(tool, kind, seen[tool].replies) for tool, kind in types.items()]
