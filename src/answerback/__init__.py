"""One typed Python function. One checked reply. Every wire."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import App
    from .calls.call import get_context
    from .calls.context import Context
    from .calls.middleware_and_observers import Invocation, Next, Observation
    from .calls.wrapping import wrap
    from .client.connecting import connect
    from .contract import Contract
    from .core.content import Annotations, Audio, Embedded, Icon, Image, Link, Text
    from .core.limits import Limits
    from .core.list_page import Page
    from .core.metadata import ResourceMeta, ResultMeta, ToolMeta
    from .core.reply import Reply, failure, success
    from .errors import (
        Conflict,
        Forbidden,
        InvalidInput,
        NotFound,
        RateLimited,
        TimedOut,
        ToolError,
        Unauthenticated,
        Unavailable,
    )
    from .protocol.widget import CSP
    from .reading import read
    from .records import audit
    from .rules import validate
    from .tools.elicitation import Declined
    from .tools.prompt import Message
    from .tools.signature import AllArguments, Ask, Depends, Header
    from .types.codecs import register_type

__version__ = "0.1.0"

# The public names of each module. A module is imported when one of its names is first used, so that
# `import answerback` costs next to nothing.
_NAMES = {
    "app": "App",
    "calls.call": "get_context",
    "calls.middleware_and_observers": "Invocation Next Observation",
    "calls.wrapping": "wrap",
    "client.connecting": "connect",
    "contract": "Contract",
    "core.content": "Annotations Audio Embedded Icon Image Link Text",
    "core.limits": "Limits",
    "core.metadata": "ResourceMeta ResultMeta ToolMeta",
    "core.list_page": "Page",
    "core.reply": "Reply failure success",
    "errors": "Conflict Forbidden InvalidInput NotFound RateLimited TimedOut ToolError "
    "Unauthenticated Unavailable",
    "protocol.widget": "CSP",
    "reading": "read",
    "records": "audit",
    "rules": "validate",
    "calls.context": "Context",
    "tools.elicitation": "Declined",
    "tools.signature": "AllArguments Ask Depends Header",
    "tools.prompt": "Message",
    "types.codecs": "register_type",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [  # noqa: RUF022 -- in `sorted` order, which does not put acronyms first
    "AllArguments",
    "Annotations",
    "App",
    "Ask",
    "Audio",
    "CSP",
    "Conflict",
    "Context",
    "Contract",
    "Declined",
    "Depends",
    "Embedded",
    "Forbidden",
    "Header",
    "Icon",
    "Image",
    "InvalidInput",
    "Invocation",
    "Limits",
    "Link",
    "Message",
    "Next",
    "NotFound",
    "Observation",
    "Page",
    "RateLimited",
    "Reply",
    "ResourceMeta",
    "ResultMeta",
    "Text",
    "TimedOut",
    "ToolError",
    "ToolMeta",
    "Unauthenticated",
    "Unavailable",
    "audit",
    "connect",
    "failure",
    "get_context",
    "read",
    "register_type",
    "success",
    "validate",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise _missing(name)
    import gc
    from importlib import import_module

    # Imports create no garbage, and a collection would take a tenth of the import time.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    finally:
        if was_enabled:
            gc.enable()
    globals()[name] = value
    return value


def _missing(name: str) -> Exception:
    """Return the error for a name that the package does not have."""
    import sys
    from importlib.machinery import PathFinder

    text = f"module {__name__!r} has no attribute {name!r}"
    # `from answerback import client` asks for the attribute before it imports the module.
    if name.startswith("_") or PathFinder.find_spec(f"{__name__}.{name}", __path__):
        return AttributeError(text)
    from .tools.other_frameworks import package_hint

    hint = package_hint(name, __all__)
    # For an import statement, the caller is this importlib function. It would turn an
    # AttributeError into an ImportError without the hint.
    if hint and sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from {__name__!r}; {hint}", name=__name__)
    # With `obj` set to None, Python does not add its own suggestion.
    return AttributeError(f"{text}; {hint}" if hint else text, name=name, obj=None)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
