"""The calls in a model's answer, in each provider's form, and the servers that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from ..core.reply import Reply
from .provider_rules import Provider

RunResult: TypeAlias = tuple[str | None, Reply[Any], str]
"""A call's id, its reply, and the name that the model called."""


class AsyncCalls(Protocol):
    """A server whose `call` is awaited."""

    async def call(self, name: str, arguments: Mapping[str, Any], /) -> Reply[Any]: ...


class BlockingCalls(Protocol):
    """A server whose `call` blocks."""

    def call(self, name: str, arguments: Mapping[str, Any], /) -> Reply[Any]: ...


@runtime_checkable
class SeveralServers(Protocol):
    """Servers of which some may still be connecting; the method is async if `call` is."""

    def wait_for(self, name: str, /) -> Any:
        """Wait while the tool's server is connecting; return its name, or "" at once."""


class ModelCall(NamedTuple):
    """A call that a model asks for, with the name and the arguments that it sent."""

    id: str | None
    name: str
    arguments: Any


def read_call(call: object, provider: Provider) -> ModelCall:
    """Read a provider's call, as JSON or as an object of its package; raises TypeError."""
    match provider:
        case "openai":
            # In the first form of Chat Completions a call has no id and no member `function`.
            inner, call_id, arguments = _member(call, "function") or call, "id", "arguments"
        case "openai_responses":
            inner, call_id, arguments = call, "call_id", "arguments"
        case "anthropic":
            inner, call_id, arguments = call, "id", "input"
        case "gemini":
            part = _member(call, "functionCall") or _member(call, "function_call")
            call = inner = part or call
            call_id, arguments = "id", "args"
    name, given = _member(inner, "name"), _member(inner, arguments)
    if name is None and given is None:
        raise TypeError(f"{call!r} should be one of the model's calls, in the form of {provider}")
    return ModelCall(_member(call, call_id), name if isinstance(name, str) else "", given)


def _member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
