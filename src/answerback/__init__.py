"""One typed Python function. One checked reply. Every wire."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .app import App
    from .calls.around import Invocation, Next, Observation
    from .client.connecting import connect
    from .content import Annotations, Audio, Embedded, Icon, Image, Link, Text
    from .context import Context
    from .contract import Contract
    from .elicitation import Declined
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
    from .limits import Limits
    from .metadata.meta_types import ResourceMeta, ResultMeta, ToolMeta
    from .reading import read
    from .records import audit
    from .reply import Reply, failure, success
    from .rules import validate
    from .tools.markers import Ask, Depends, Header
    from .tools.prompt import Message
    from .types.codecs import register_type
    from .widgets.csp import CSP
    from .wrapping import wrap

__version__ = "0.1.0"

# Where each public name is; it is imported when it is first used, so that
# `import answerback` costs next to nothing.
_HOME = {
    "Annotations": "content",
    "App": "app",
    "Ask": "tools.markers",
    "Audio": "content",
    "CSP": "widgets.csp",
    "Conflict": "errors",
    "Context": "context",
    "Contract": "contract",
    "Declined": "elicitation",
    "Depends": "tools.markers",
    "Embedded": "content",
    "Forbidden": "errors",
    "Header": "tools.markers",
    "Icon": "content",
    "Image": "content",
    "InvalidInput": "errors",
    "Invocation": "calls.around",
    "Limits": "limits",
    "Link": "content",
    "Message": "tools.prompt",
    "Next": "calls.around",
    "NotFound": "errors",
    "Observation": "calls.around",
    "RateLimited": "errors",
    "Reply": "reply",
    "ResourceMeta": "metadata.meta_types",
    "ResultMeta": "metadata.meta_types",
    "Text": "content",
    "TimedOut": "errors",
    "ToolError": "errors",
    "ToolMeta": "metadata.meta_types",
    "Unauthenticated": "errors",
    "Unavailable": "errors",
    "audit": "records",
    "connect": "client.connecting",
    "failure": "reply",
    "read": "reading",
    "register_type": "types.codecs",
    "success": "reply",
    "validate": "rules",
    "wrap": "wrapping",
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
