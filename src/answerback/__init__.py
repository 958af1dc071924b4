"""One typed Python function. One checked reply. Every wire."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import App
    from .calls.author_middleware import Invocation, Next, Observation
    from .calls.wrapping import wrap
    from .client.connecting import connect
    from .contract import Contract
    from .core.content import Annotations, Audio, Embedded, Icon, Image, Link, Text
    from .core.limits import Limits
    from .core.metadata.meta_types import ResourceMeta, ResultMeta, ToolMeta
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
    from .protocol.widgets.csp import CSP
    from .reading import read
    from .records import audit
    from .rules import validate
    from .tools.context import Context
    from .tools.elicitation import Declined
    from .tools.markers import Ask, Depends, Header
    from .tools.prompt import Message
    from .types.codecs import register_type

__version__ = "0.1.0"

# Where each public name is; it is imported when it is first used, so that
# `import answerback` costs next to nothing.
_HOME = {
    "Annotations": "core.content",
    "App": "app",
    "Ask": "tools.markers",
    "Audio": "core.content",
    "CSP": "protocol.widgets.csp",
    "Conflict": "errors",
    "Context": "tools.context",
    "Contract": "contract",
    "Declined": "tools.elicitation",
    "Depends": "tools.markers",
    "Embedded": "core.content",
    "Forbidden": "errors",
    "Header": "tools.markers",
    "Icon": "core.content",
    "Image": "core.content",
    "InvalidInput": "errors",
    "Invocation": "calls.author_middleware",
    "Limits": "core.limits",
    "Link": "core.content",
    "Message": "tools.prompt",
    "Next": "calls.author_middleware",
    "NotFound": "errors",
    "Observation": "calls.author_middleware",
    "RateLimited": "errors",
    "Reply": "core.reply",
    "ResourceMeta": "core.metadata.meta_types",
    "ResultMeta": "core.metadata.meta_types",
    "Text": "core.content",
    "TimedOut": "errors",
    "ToolError": "errors",
    "ToolMeta": "core.metadata.meta_types",
    "Unauthenticated": "errors",
    "Unavailable": "errors",
    "audit": "records",
    "connect": "client.connecting",
    "failure": "core.reply",
    "read": "reading",
    "register_type": "types.codecs",
    "success": "core.reply",
    "validate": "rules",
    "wrap": "calls.wrapping",
}

__all__ = [  # noqa: RUF022 -- in the order of `sorted`, in which acronyms are not first
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
    "read",
    "register_type",
    "success",
    "validate",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import gc
    from importlib import import_module

    # Modules are no garbage, and looking for some takes a tenth of the import.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    finally:
        if was_enabled:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
