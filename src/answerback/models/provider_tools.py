"""A set of tools in one provider's format; turns the model's calls back into tool calls."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from inspect import iscoroutinefunction
from typing import Any, TypeAlias, cast, overload

import msgspec

from ..core.reply import Error, Reply, failure
from ..core.versions import LATEST_STATEFUL
from ..errors import INVALID_ARGUMENTS, TOOL_NOT_FOUND, InvalidInput, NotFound, ToolError
from ..protocol.listing import tool_entry
from ..registry.declarations import HasRegistry, registry_of
from .argument_plans import Decoder
from .provider_rules import Provider, ProviderRules, StrictLimits, fitting_names
from .result_messages import (
    AsyncCalls,
    BlockingCalls,
    CallResult,
    ModelCall,
    RunResult,
    SeveralServers,
    member,
    openai_media_message,
    parts_for,
    read_call,
    result_message,
)
from .schema_conversion import Converted, SchemaRefused, convert_schema

_SCHEMA_NAMES = ("input_schema", "inputSchema", "parameters")
"""The member with the arguments' schema: in SDK 2, in MCP and SDK 1, and in FastMCP's tools."""
_MAX_LISTED = 50
"""How many tools the error for an unknown name lists."""
_MAX_NAME = 100

Strict: TypeAlias = bool | Collection[str]


class ToolEntry(msgspec.Struct, frozen=True):
    """The parts of a tool that are sent to a model."""

    name: str
    description: str
    schema: Mapping[str, Any]
    for_model: bool = True
    """False if only a widget may call the tool."""


def read_tools(tools: Any) -> tuple[list[ToolEntry], list[str]]:
    """Return the tools in an App, a list, a mapping by name or a `tools/list` result.

    If several tools have the same name, the first is returned; the second value lists these names.
    Raises TypeError for anything else.
    """
    entries: dict[str, ToolEntry] = {}
    doubled: dict[str, None] = {}
    for tool in _listed(tools):
        name = member(tool, "name")
        schema: Any = next((found for key in _SCHEMA_NAMES if (found := member(tool, key))), {})
        if not isinstance(name, str):
            raise TypeError(f"{tool!r:.200} is not a tool: it has no name")
        # One bad tool on someone else's server must not break its client: the report names
        # duplicates, and says what is malformed.
        if not isinstance(schema, Mapping):
            schema = {"properties": schema}
        text = member(tool, "description") or member(tool, "title") or ""
        if name in entries:
            doubled[name] = None
        else:
            entries[name] = ToolEntry(name, text, schema, _is_for_model(tool))
    return list(entries.values()), list(doubled)


def _listed(tools: Any) -> Iterable[Any]:
    if isinstance(tools, HasRegistry):
        return [tool_entry(each, LATEST_STATEFUL) for each in registry_of(tools).tools.values()]
    if isinstance(tools, Mapping):
        if "name" in tools and not isinstance(tools["name"], Mapping):
            raise TypeError("tools should be a list; this is one tool, so write [tool]")
        listed = tools.get("tools")
        return listed if isinstance(listed, list) else list(tools.values())
    listed = getattr(tools, "tools", None)
    if isinstance(listed, list | tuple):
        return listed
    if hasattr(tools, "__await__"):
        raise TypeError("tools should be a list, but this must be awaited first: await …")
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise TypeError(f"tools should be an App or a list of tools, not {type(tools).__name__}")
    return tools


def _is_for_model(tool: Any) -> bool:
    meta = member(tool, "_meta") or member(tool, "meta")
    if not isinstance(meta, Mapping):
        return True
    ui = meta.get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    if isinstance(visibility, list | tuple):
        return "model" in visibility
    return meta.get("openai/visibility") != "private"


class ToolReport(msgspec.Struct, frozen=True):
    """One tool's conversion: its names, whether it is strict, and what had to change."""

    tool: str
    """The tool's own name."""
    name: str
    """The name that the model sees."""
    strict: bool
    """Whether the provider checks the arguments against the schema."""
    reason: str | None
    """Why the tool is not strict even though strict was requested."""
    changes: tuple[str, ...] = ()
    """What had to change in the schema, one sentence each."""


class ConversionReport(msgspec.Struct, frozen=True):
    """The changes to each tool, and the date of the provider's rules; `str()` returns a report."""

    provider: Provider
    """The provider."""
    read_on: str
    """When the provider's rules were read."""
    tools: tuple[ToolReport, ...]
    """One report for each tool."""
    warnings: tuple[str, ...] = ()
    """Warnings about the set of tools as a whole."""

    def __str__(self) -> str:
        lines = [f"{self.provider}, rules as of {self.read_on}"]
        lines += [f"warning: {each}" for each in self.warnings]
        for tool in self.tools:
            name = tool.tool if tool.tool == tool.name else f"{tool.tool} as {tool.name}"
            why = f": not strict, {tool.reason}" if tool.reason else ""
            lines.append(name + (": strict" if tool.strict else why))
            lines += [f"  {each}" for each in tool.changes]
        return "\n".join(lines)


class ModelTools:
    """A set of tools in one provider's format.

    `tools` is the JSON to send. `run` makes a call that the model requested; `name_of` and
    `arguments` only convert it. `messages` turns the replies into messages for the model. `report`
    says what had to change.
    """

    def __init__(
        self,
        tools: Any,
        rules: ProviderRules,
        write: Callable[[str, ToolEntry, Converted, bool], dict[str, Any]],
        *,
        strict: Strict = False,
        functions: bool = False,
    ) -> None:
        found, doubled = read_tools(tools)
        entries = [each for each in found if each.for_model]
        names = fitting_names([each.name for each in entries], rules.names)
        self.rules = rules
        self._functions = functions
        self._tools = {new: name for name, new in names.items()}
        self._decoders: dict[str, Decoder] = {}
        self.tools: list[Any] = []
        """The JSON to send, for the `tools` argument of the provider's package."""
        reports = []
        limits = StrictLimits(rules.limits)
        wanted = _wanted(strict, entries)
        for entry in entries:
            made, is_strict, reason = _converted(entry, rules, limits, strict=entry.name in wanted)
            name = names[entry.name]
            self._decoders[name] = made.decoder
            self.tools.append(write(name, entry, made, is_strict))
            reports.append(ToolReport(entry.name, name, is_strict, reason, made.changes))
        warnings = tuple(_warnings(found, doubled, rules))
        self.report: ConversionReport = ConversionReport(
            rules.provider, rules.read_on, tuple(reports), warnings
        )
        """What had to change."""

    def name_of(self, provider_name: str) -> str:
        """Return the tool's own name; raise NotFound for a name that the model made up."""
        if provider_name not in self._tools:
            shown = ", ".join([*self._tools][:_MAX_LISTED])
            more = len(self._tools) - _MAX_LISTED
            hint = f"the tools are {shown}" + (f" and {more} others" if more > 0 else "")
            name = provider_name[:_MAX_NAME]
            raise NotFound(f"Unknown tool: {name}", TOOL_NOT_FOUND, hint=hint)
        return self._tools[provider_name]

    def arguments(
        self, provider_name: str, raw: str | bytes | Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """Return the arguments that the tool expects, given the ones that the model sent.

        *raw* is JSON text or a mapping of JSON values. Raises InvalidInput for anything else.
        """
        self.name_of(provider_name)
        given: Any = raw
        if isinstance(raw, str | bytes):
            try:
                # Models may send an empty string for a tool without arguments.
                given = msgspec.json.decode(raw) if raw.strip() else {}
            except (ValueError, RecursionError) as exc:
                message = f"the arguments are not JSON: {exc}"
                raise InvalidInput(message, INVALID_ARGUMENTS) from None
        if given is not None and not isinstance(given, Mapping):
            message = f"the arguments must be an object, not {type(given).__name__}"
            raise InvalidInput(message, INVALID_ARGUMENTS)
        try:
            decoded = self._decoders[provider_name].decode({} if given is None else dict(given))
        except RecursionError:
            raise InvalidInput("the arguments are nested too deeply", INVALID_ARGUMENTS) from None
        if not isinstance(raw, str | bytes):
            # An object may hold a value that JSON cannot express, such as a lone surrogate.
            try:
                msgspec.json.encode(decoded)
            except (TypeError, ValueError, RecursionError) as exc:
                message = f"the arguments cannot be written as JSON: {exc}"
                raise InvalidInput(message, INVALID_ARGUMENTS) from None
        return dict(decoded)

    @overload
    def run(self, server: AsyncCalls, call: object) -> Coroutine[Any, Any, RunResult]: ...
    @overload
    def run(self, server: BlockingCalls, call: object) -> RunResult: ...
    def run(
        self, server: AsyncCalls | BlockingCalls, call: object
    ) -> RunResult | Coroutine[Any, Any, RunResult]:
        """Make a call that the model requested; return a result for `messages`, or a coroutine.

        *server* is a connected server. *call* is a call in the provider's format, as JSON or as
        an object from its package. A made-up tool name or wrong arguments result in a failed
        reply; so does a tool whose server is still connecting, after waiting for the connection.
        Raises TypeError for anything other than a call.
        """
        asked = read_call(call, self.rules.provider)
        if iscoroutinefunction(server.call):
            return self._awaited(cast("AsyncCalls", server), asked)
        made = self._tool_call(asked)
        if asked.name not in self._tools and isinstance(server, SeveralServers):
            made = _late(server.wait_for(asked.name)) or made
        blocking = cast("BlockingCalls", server)
        reply = made if isinstance(made, Reply) else blocking.call(*made)
        return asked.id, reply, asked.name

    async def _awaited(self, server: AsyncCalls, asked: ModelCall) -> RunResult:
        made = self._tool_call(asked)
        if asked.name not in self._tools and isinstance(server, SeveralServers):
            made = _late(await server.wait_for(asked.name)) or made
        reply = made if isinstance(made, Reply) else await server.call(*made)
        return asked.id, reply, asked.name

    def _tool_call(self, asked: ModelCall) -> tuple[str, dict[str, Any]] | Reply[Any]:
        """Return the tool's name and arguments, or a failed reply if the model got them wrong."""
        try:
            return self.name_of(asked.name), self.arguments(asked.name, asked.arguments)
        except ToolError as exc:
            return Reply(error=Error.of(exc))

    def message(
        self,
        call_id: str | None,
        reply: Any,
        *,
        name: str = "",
        budget: int | None = None,
        untrusted: bool = False,
    ) -> Any:
        """Return the result of one call: a message, an item, a block or a part.

        *name* is the name in the model's call, which Gemini and the old `functions` need. *budget*
        is the maximum number of characters of text. *untrusted* puts the text between markers, as
        in `reply.for_model`. The result contains images if the provider accepts them there; in Chat
        Completions, `messages` adds them.
        """
        return self._written(self._result(call_id, reply, name, budget=budget, untrusted=untrusted))

    def messages(
        self,
        results: Iterable[tuple[Any, ...]],
        *,
        budget: int | None = None,
        untrusted: bool = False,
    ) -> list[Any]:
        """Return everything to send after the calls in one of the model's responses.

        Each of *results* is `(call_id, reply)` or `(call_id, reply, name)`. *budget* is the maximum
        number of characters of text in each. *untrusted* puts the text between markers, as in
        `reply.for_model`.
        """
        found = [self._result(*each, budget=budget, untrusted=untrusted) for each in results]
        written = [self._written(each) for each in found]
        match self.rules.provider:
            case "openai":
                return [*written, *openai_media_message(found)]
            case "anthropic":
                return [{"role": "user", "content": written}] if written else []
            case "gemini":
                return [{"role": "user", "parts": written}] if written else []
        return written

    def _result(
        self,
        call_id: str | None,
        reply: Any,
        name: str = "",
        *,
        budget: int | None,
        untrusted: bool,
    ) -> CallResult:
        if not name and (self._functions or self.rules.provider == "gemini"):
            raise TypeError("name= is missing: this provider matches a result to its call by name")
        parts = parts_for(reply, self.rules, budget, untrusted=untrusted)
        return CallResult(call_id, name, parts)

    def _written(self, result: CallResult) -> dict[str, Any]:
        return result_message(result, self.rules.provider, functions=self._functions)


def _wanted(strict: Strict, entries: list[ToolEntry]) -> set[str]:
    names = {each.name for each in entries}
    if isinstance(strict, bool):
        return names if strict else set()
    wanted = {strict} if isinstance(strict, str) else set(strict)
    if unknown := sorted(wanted - names):
        raise ValueError(f"strict= names {unknown[0]!r}, which is not one of the tools")
    return wanted


def _converted(
    entry: ToolEntry, rules: ProviderRules, limits: StrictLimits, *, strict: bool
) -> tuple[Converted, bool, str | None]:
    """Return the converted tool, whether it is strict, and why not if strict was requested."""
    reason = None
    if strict and rules.strict is not None:
        try:
            made = convert_schema(entry.schema, rules.strict)
            reason = limits.refusal(made.schema)
        except SchemaRefused as exc:
            reason = str(exc)
        else:
            if reason is None:
                return made, True, None
    return convert_schema(entry.schema, rules.plain), False, reason


def _warnings(found: list[ToolEntry], doubled: list[str], rules: ProviderRules) -> Iterable[str]:
    for name in doubled:
        yield f"a second {name!r} was left out; give one of the two tools a prefix"
    for each in found:
        if not each.for_model:
            yield f"{each.name!r} was left out because only a widget may call it"
    entries = [each for each in found if each.for_model]
    if rules.max_tools is not None and len(entries) > rules.max_tools:
        yield f"{len(entries)} tools, but the provider allows only {rules.max_tools} in a request"
    limit = rules.long_description
    for each in entries:
        size = len(each.description)
        if limit is not None and size > limit:
            about = f"{each.name!r} has a description of {size} characters"
            yield f"{about}, but some models refuse more than {limit}"


def _late(server: str) -> Reply[Any] | None:
    """Return the reply for a tool whose server was left out of the list.

    The tool is not called: the model may call only the listed tools.
    """
    if not server:
        return None
    text = f"The server {server} was still connecting when the tools were listed"
    return failure(text, "UNAVAILABLE", hint="list the tools again, and repeat the call")
