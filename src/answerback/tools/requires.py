"""A tool's gates: the functions that a caller must pass, in order, and their parameters.

`calls/gating.py` runs them; `answerback.gates` has ready-made gates.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import zip_longest
from types import FunctionType, UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from ..core.author_errors import did_you_mean, similar_names
from ..errors import ToolError
from ..types.problems import without_metadata
from .callable_source import check_callable, parameter_hints, source_of
from .signature import is_context

if TYPE_CHECKING:
    from ..registry.declarations import Registry
    from .tool import Tool


_CONTEXT_NAMES = ("ctx", "context", "_")


class Refusal(ToolError):
    """The call was refused; with the code LOGIN_REQUIRED or SCOPE_REQUIRED, the client can log in.

    *message* is text for the caller. *code* is an UPPER_SNAKE name, by default FORBIDDEN. *details*
    is JSON for programs. *hint* says what the caller can do. *url* is a page where the user can get
    what is missing. The message ends with the URL, for clients that show only the text. *feature*
    names the missing feature. *scopes* are the scopes that the call needs; by default those of
    the tool's `scope` gates.
    """

    code = kind = "FORBIDDEN"

    def __init__(
        self,
        message: str,
        code: str | None = None,
        details: object = None,
        *,
        hint: str | None = None,
        url: str | None = None,
        feature: str | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        if url and url not in message:
            message = f"{message}: {url}"
        super().__init__(message, code, details, hint=hint)
        self.url = url
        self.feature = feature
        self.scopes = scopes


class BuiltinGate(ABC):
    """A gate from `answerback.gates`; unlike an author's function, it describes itself."""

    inline: bool = False
    """True if it never blocks, so it can run in place."""
    is_async: bool = False
    codes: tuple[str, ...]
    """The codes of its refusals."""
    label: str
    """Its name in tool listings."""

    @abstractmethod
    def __call__(self, ctx: Any) -> object:
        """Return the call's refusal, or None; a coroutine if the gate is async.

        *ctx* is a Context, which belongs to a higher layer.
        """


class UserGate(BuiltinGate):
    """A gate that checks only the user."""

    inline = True
    hide: bool
    """Whether the tool is hidden from users that it refuses."""

    @abstractmethod
    def refuse_user(self, user: object) -> Refusal | None:
        """Return the refusal for *user*; None lets the user pass."""

    def __call__(self, ctx: Any) -> Refusal | None:
        return self.refuse_user(ctx.user)


class NeedsScopes(UserGate):
    """A gate that requires scopes in the user's token."""

    scopes: tuple[str, ...]

    @abstractmethod
    def with_scopes(self, names: tuple[str, ...]) -> NeedsScopes:
        """Return this gate for all of a tool's scopes."""


class Gate:
    """One gate. A runner runs it like a tool, so it has the members that a runner needs."""

    middleware: tuple[Any, ...] = ()
    noun = "gate"

    def __init__(self, fn: Callable[..., Any], timeout: float, app: Registry | None = None) -> None:
        self.fn = fn
        self.app = app
        """The app that the gate belongs to, if that app includes the tool's app; None otherwise."""
        hints = _checked_hints(fn)
        self.name: str = getattr(fn, "__name__", type(fn).__name__)
        self.context, *parameters = hints
        """The name of the first parameter, which receives the Context."""
        self.parameters: tuple[str, ...] = tuple(parameters)
        """The tool's parameters that the gate takes."""
        self.hints = hints
        self.inline = isinstance(fn, BuiltinGate) and fn.inline
        """True if it never blocks, so it runs in place."""
        self.is_async = fn.is_async if isinstance(fn, BuiltinGate) else source_of(fn).is_async
        self.timeout: float | None = None if self.inline else timeout

    def check_parameters(self, tool: Tool) -> None:
        """Raise TypeError for a parameter that *tool* lacks, or has with a different type."""
        if not self.parameters:
            return
        known = {each.target: each.annotation for each in tool.signature.parameters}
        received = tool.signature.argument_object
        if received is not None and received.parameter is not None:
            known[received.parameter] = received.annotation
        for name in self.parameters:
            if name not in known:
                names = ", ".join(known)
                all_of_them = f"it has {names}" if names else f"{tool.owner} has no arguments"
                hint = did_you_mean(similar_names(name, known)) or all_of_them
                raise TypeError(
                    f"gate {self.name!r} takes {name!r}, which is not an argument of {tool.owner}; "
                    + hint
                )
            if not _takes(self.hints[name], known[name]):
                raise TypeError(
                    f"gate {self.name!r} takes {name!r} as {_shown(self.hints[name])}, "
                    f"and {tool.owner} as {_shown(known[name])}; give both the same type"
                )

    def arguments(self, tool: Tool, decoded: dict[str, Any]) -> dict[str, Any]:
        """Return the gate's arguments; a value from a default factory is reused for the tool."""
        found: dict[str, Any] = {}
        if (received := tool.signature.argument_object) is not None:
            return {name: decoded[name] for name in self.parameters if name == received.parameter}
        for each in tool.signature.parameters:
            name = each.target
            if name not in self.parameters:
                continue
            if name not in decoded and each.default_factory is not None:
                decoded[name] = each.default_factory()
            found[name] = decoded.get(name, each.default)
        return found


class Gates:
    """All gates of one tool. Several `scope` gates are merged into one, in place of the first."""

    def __init__(self, given: Sequence[Callable[..., Any]], tool: Tool, timeout: float) -> None:
        self.declared = tuple(given)
        self._tool = tool
        self._timeout = timeout
        scoped = (each for each in self.declared if isinstance(each, NeedsScopes))
        needed = (name for each in scoped for name in each.scopes)
        self.scopes: tuple[str, ...] = tuple(dict.fromkeys(needed))
        """All the scopes that the tool needs."""
        self.by_token = tuple(each for each in self.declared if isinstance(each, UserGate))
        """The gates that look only at the user."""
        self.hiding = tuple(each for each in self.by_token if each.hide)
        """The gates whose refusal hides the tool."""
        # Refuse invalid gates now, unless a name in an annotation is not defined yet.
        with suppress(NameError):
            _ = self.late

    def hide_from(self, user: object) -> bool:
        """Return whether *user* must not learn that the tool exists."""
        return any(each.refuse_user(user) is not None for each in self.hiding)

    @cached_property
    def _all(self) -> list[Gate]:
        merged: list[Gate] = []
        has_scopes = False
        tool = self._tool
        including = () if tool.is_widget else tool.path[:-1]
        apps = [app for app in including for _ in app.requires]
        for each, app in zip_longest(self.declared, apps):
            if not isinstance(each, NeedsScopes):
                merged.append(Gate(each, self._timeout, app))
            elif not has_scopes:
                has_scopes = True
                merged.append(Gate(each.with_scopes(self.scopes), self._timeout, app))
        return merged

    @cached_property
    def early(self) -> tuple[Gate, ...]:
        """The gates that run before the arguments are decoded."""
        return tuple(each for each in self._all if not each.parameters)

    @cached_property
    def late(self) -> tuple[Gate, ...]:
        """The gates that take the tool's arguments."""
        for each in self._all:
            each.check_parameters(self._tool)
        return tuple(each for each in self._all if each.parameters)


def add_gates(tool: Tool, before: Sequence[Callable[..., Any]], timeout: float) -> None:
    """Set the gates of *tool*: *before* (the app's gates), then its own."""
    own = tool.settings.requires if tool.gates is None else tool.gates.declared
    given = (*before, *own)
    tool.gates = Gates(given, tool, timeout) if given else None
    tool.has_gates_or_policy = bool(given) or tool.policy is not None


def checked_gates(given: Any) -> tuple[Callable[..., Any], ...]:
    """Return the value of `requires=`; raise TypeError for an entry that cannot be a gate."""
    if callable(given) or isinstance(given, str):
        written = given.__name__ if isinstance(given, FunctionType) else repr(given)
        raise TypeError(f"requires is a list: requires=[{written}]")
    if not isinstance(given, list | tuple):
        return ()
    for each in given:
        if isinstance(each, str):
            raise TypeError(f"requires contains {each!r}; for a scope, write scope({each!r})")
        maker = getattr(each, "__module__", None) == "answerback.gates.builtin"
        if maker and isinstance(each, FunctionType):
            raise TypeError(f"requires contains {each.__name__} itself; write {each.__name__}(…)")
        if not callable(each) or isinstance(each, type):
            raise TypeError(f"requires contains {each!r}; write functions: def owner_only(ctx)")
        # An annotation may contain an undefined name; the first call reads it again.
        with suppress(NameError):
            _checked_hints(each)
    return tuple(given)


def _checked_hints(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return a gate's parameters and annotations; raise TypeError for an invalid signature."""
    source = source_of(fn)
    name = getattr(fn, "__name__", type(fn).__name__)
    check_callable(source, f"gate {name!r}")
    hints = parameter_hints(fn)
    first = next(iter(hints), None)
    # Without a type, the name must make it clear that this is neither an argument nor the user.
    is_named = first in _CONTEXT_NAMES and hints[first] in (None, Any)
    if first is None or not (is_named or is_context(hints[first])):
        raise TypeError(f"the first parameter of gate {name!r} must be ctx: def {name}(ctx)")
    return hints


def _takes(wanted: object, given: object) -> bool:
    """Return whether a gate's annotation accepts the values of the tool's parameter."""
    wanted, given = without_metadata(wanted), without_metadata(given)
    if wanted in (None, Any, object) or wanted == given:
        return True
    return get_origin(wanted) in (Union, UnionType) and given in get_args(wanted)


def _shown(annotation: object) -> str:
    bare = without_metadata(annotation)
    return bare.__name__ if isinstance(bare, type) else str(bare)
