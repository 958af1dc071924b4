"""The messages about words of other frameworks; `foreign_words` has the words.

It is imported when something is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn

from ..core.suggestions import did_you_mean, similar_names
from .foreign_words import APP, CONTEXT, CONVENTIONS, HOMES, OPTIONS, PACKAGE, RUN

_WHOLE_ARGUMENTS = frozenset({"params", "args", "arguments", "input", "payload", "body", "kwargs"})
_OF_THE_SERVER = frozenset(
    {"manager", "logger", "db", "database", "session", "client", "pool", "conn", "connection"}
    | {"config", "settings", "request", "req", "user"}
)

_GROUPED = {
    **dict.fromkeys(("invoking", "invoked", "visible_to"), ("widget", "Shown", "")),
    "idempotency_key": ("task", "Task", "key"),
    **dict.fromkeys(("lenient", "returns", "structured", "nan"), ("values", "Values", "")),
    **dict.fromkeys(("url", "sessions", "challenge", "used_tokens"), ("access", "Access", "")),
    "task_limits": ("limits", "Limits", "tasks"),
}
"""Options that became part of another option: that one, its class, and the new name if any."""


def refuse_grouped(options: Mapping[str, object], known: Collection[str]) -> None:
    """Raise TypeError if one of *options* became part of another option among *known*."""
    old = {name: _GROUPED[name] for name in sorted(options) if name in _GROUPED}
    old = {name: place for name, place in old.items() if name not in known and place[0] in known}
    if not old:
        return
    first, (option, kind, _) = next(iter(old.items()))
    plain = options.get(option)
    parts = [repr(plain)] if isinstance(plain, str) else []
    parts += [
        f"{renamed or name}={_shown(options[name])}"
        for name, (place, _, renamed) in old.items()
        if place == option
    ]
    package = "answerback" if kind == "Limits" else "answerback.options"
    raise TypeError(
        f"{first}= is now part of {option}=: write {option}={kind}({', '.join(parts)}), "
        f"with {kind} from {package}"
    )


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | bool | set | list | tuple) else "…"


def option_hint(name: str, known: Collection[str]) -> str:
    """Return what to write instead of *name*, an option that is not among *known*."""
    plain = _snake_case(name)
    if plain in known:
        return f"write {plain}="
    if plain in OPTIONS:
        return OPTIONS[plain]
    if similar := similar_names(plain, known):
        return did_you_mean(similar)
    return f"there are {', '.join(sorted(known))}"


def _snake_case(name: str) -> str:
    """Return `inputSchema` as `input_schema`, and `_meta` as `meta`."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda capital: f"_{capital[0]}", name).lower().strip("_")


def missing_context_member(name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a member that `Context` does not have."""
    return _missing_member("'Context' object", name, CONTEXT, known)


def missing_app_member(name: str, known: Iterable[str]) -> AttributeError:
    """Return the error for a member that `App` does not have."""
    return _missing_member("'App' object", name, APP, known)


def _missing_member(
    owner: str, name: str, words: Mapping[str, str], known: Iterable[str]
) -> AttributeError:
    hint = words.get(name, "")
    if not hint and not name.startswith("_"):
        hint = did_you_mean(similar_names(name, [each for each in known if each[0] != "_"]))
    text = f"{owner} has no attribute {name!r}"
    # With an `obj` of None, Python does not add a suggestion of its own.
    return AttributeError(f"{text}; {hint}" if hint else text, name=name, obj=None)


def package_hint(name: str, known: Collection[str]) -> str:
    """Return what to write instead of a name that the package does not have; empty if unknown."""
    for module, names in HOMES.items():
        if name in names.split():
            return f"write from {module} import {name}"
    if hint := CONVENTIONS.get(name.replace("_", "").lower()):
        return f"{hint}; docs/reference/conventions.md has the other names"
    return PACKAGE.get(name) or did_you_mean(similar_names(name, known))


def refuse_run_options(options: dict[str, object]) -> NoReturn:
    """Raise TypeError for options of `app.run`, which takes a command line's words."""
    name = min(options)
    hint = RUN.get(name, "it takes the words of a command line, as in app.run(['mcp'])")
    raise TypeError(f"app.run takes no {name}=; {hint}")


def refuse_text(arguments: str) -> NoReturn:
    """Raise TypeError for a string where `app.run` takes a list of words."""
    words = {"stdio": ["mcp"], "http": ["serve"], "sse": ["serve"], "streamable-http": ["serve"]}
    wanted = words.get(arguments, arguments.split())
    raise TypeError(f"app.run takes a list of words, not {arguments!r}; write app.run({wanted!r})")


def missing_type_hint(parameter: str, function: str) -> str:
    """Return what to write for a parameter without a type."""
    if function == "<lambda>":
        return "a lambda cannot have types, so write a def"
    if parameter in ("ctx", "context"):
        return f"write {parameter}: Context with Context from answerback"
    if parameter in _WHOLE_ARGUMENTS:
        return (
            f"write one parameter for each argument, as in def {function}(x: int, y: str), "
            f"or {parameter}: Annotated[dict, AllArguments] for all arguments as one object"
        )
    if parameter in _OF_THE_SERVER:
        return (
            f"write {parameter}: str for an argument, "
            f"or {parameter}: Annotated[T, Depends(fn)] for a value of the server's"
        )
    return f"write {parameter}: str"
