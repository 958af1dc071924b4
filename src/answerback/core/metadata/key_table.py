"""The table of `_meta` keys that hosts know: where each may occur, and its values.

The table was compared with its two sources on the dates below. To add a key, add a row here and
the same key to a TypedDict in `meta_types`, unless clients send it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ..json_value import is_number

APPS_SDK = "Apps SDK reference, 2026-06-27"
"""developers.openai.com/apps-sdk/reference, as it was on that day."""
APPS_SDK_EXAMPLES = "examples of the Apps SDK, 2025-10; no longer in its reference"
MCP_APPS = "MCP Apps 2026-01-26, ext-apps 2.0.4"

Place: TypeAlias = Literal["tool", "result", "resource", "content", "block", "request"]
"""The object that the `_meta` belongs to.

A resource is a list's entry, a content is what `resources/read` sends or what an embedded
resource holds, a block is any other content block.
"""


class ValueKind(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a key may have; `expected` describes them in messages."""

    expected: str
    is_valid: Callable[[Any], bool]
    members: Mapping[str, ValueKind] = {}
    """An object's members."""
    elsewhere: Mapping[str, str] = {}
    """Members that belong elsewhere, and the place for a message."""


class MetaKey(msgspec.Struct, frozen=True):
    """One key: its values, the places where it may occur, and the source that defines it.

    Messages name the first place.
    """

    name: str
    kind: ValueKind
    places: tuple[Place, ...]
    source: str


def _are_texts(value: object) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _one_of(*allowed: str) -> ValueKind:
    names = " or ".join(map(repr, allowed))
    return ValueKind(expected=names, is_valid=lambda value: value in allowed)


def _object(members: Mapping[str, ValueKind], **elsewhere: str) -> ValueKind:
    return ValueKind(
        expected=f"a dict with {', '.join(members)}",
        is_valid=lambda value: isinstance(value, Mapping),
        members=members,
        elsewhere=elsewhere,
    )


def is_security_scheme(value: object) -> bool:
    """Return whether *value* is `{"type": "noauth"}` or `{"type": "oauth2", "scopes": […]}`."""
    if not isinstance(value, Mapping):
        return False
    if value.get("type") == "oauth2":
        return value.keys() <= {"type", "scopes"} and _are_texts(value.get("scopes", ()))
    return value.get("type") == "noauth" and len(value) == 1


def are_security_schemes(value: object) -> bool:
    """Return whether *value* is a non-empty list of security schemes."""
    return isinstance(value, list | tuple) and bool(value) and all(map(is_security_scheme, value))


SECURITY_SCHEMES = (
    "a list of {'type': 'noauth'} and {'type': 'oauth2', 'scopes': ['accounts:read']}"
)
TEXT = ValueKind(expected="a str", is_valid=lambda value: isinstance(value, str))
TEXTS = ValueKind(expected="a list of str", is_valid=_are_texts)
FLAG = ValueKind(expected="True or False", is_valid=lambda value: isinstance(value, bool))
STATUS = ValueKind(
    expected="a str of at most 64 characters",
    is_valid=lambda value: isinstance(value, str) and len(value) <= 64,
)
UI_URI = ValueKind(
    expected="a URI such as 'ui://widget/accounts.html'",
    is_valid=lambda value: isinstance(value, str) and value.startswith("ui://"),
)
ORIGIN = ValueKind(
    expected="an origin such as 'https://accounts.example.com'",
    is_valid=lambda value: isinstance(value, str) and value != "",
)
SCHEMES = ValueKind(expected=SECURITY_SCHEMES, is_valid=are_security_schemes)
CHALLENGES = ValueKind(
    expected="a WWW-Authenticate challenge or a list of them",
    is_valid=lambda value: isinstance(value, str) or _are_texts(value),
)
VISIBILITY = ValueKind(
    expected="a list of 'model' and 'app'",
    is_valid=lambda value: _are_texts(value) and set(value) <= {"model", "app"},
)
EMPTY_OBJECT = ValueKind(expected="an empty dict, {}", is_valid=lambda value: value == {})
NUMBER = ValueKind(expected="a number", is_valid=is_number)

OPENAI_CSP = _object(
    {
        "connect_domains": TEXTS,
        "resource_domains": TEXTS,
        "frame_domains": TEXTS,
        "redirect_domains": TEXTS,
    }
)
CSP = _object(
    {
        "connectDomains": TEXTS,
        "resourceDomains": TEXTS,
        "frameDomains": TEXTS,
        "baseUriDomains": TEXTS,
    },
    redirectDomains="'redirect_domains' of 'openai/widgetCSP'",
)
PERMISSIONS = _object(
    dict.fromkeys(("camera", "microphone", "geolocation", "clipboardWrite"), EMPTY_OBJECT)
)
_TOOL_UI = {"resourceUri": UI_URI, "visibility": VISIBILITY}
_RESOURCE_UI = {"csp": CSP, "permissions": PERMISSIONS, "domain": TEXT, "prefersBorder": FLAG}
_ON_WIDGET = "the widget: app.widget(…), or app.resource(uri, content_meta=…)"
_ON_TOOL = "the tool: @app.tool(meta=…)"
TOOL_UI = _object(_TOOL_UI, **dict.fromkeys(_RESOURCE_UI, _ON_WIDGET))
RESOURCE_UI = _object(_RESOURCE_UI, **dict.fromkeys(_TOOL_UI, _ON_TOOL))
RESULT_UI = _object(_TOOL_UI | _RESOURCE_UI)
LOCATION = _object(
    {
        **dict.fromkeys(("city", "region", "country", "timezone"), TEXT),
        **dict.fromkeys(("longitude", "latitude"), NUMBER),
    }
)

_TOOL: tuple[Place, ...] = ("tool", "block")
_TOOL_AND_RESULT: tuple[Place, ...] = ("tool", "result", "block")
_RESULT: tuple[Place, ...] = ("result", "block")
_WIDGET: tuple[Place, ...] = ("content", "resource", "result", "block")
_REQUEST: tuple[Place, ...] = ("request",)

KEYS: tuple[MetaKey, ...] = (
    # The widget that shows the tool's replies, and who may call the tool.
    MetaKey("ui", TOOL_UI, ("tool",), MCP_APPS),
    # What the page of a widget may use, and how it is shown.
    MetaKey("ui", RESOURCE_UI, ("resource", "content"), MCP_APPS),
    # The same for one result.
    MetaKey("ui", RESULT_UI, _RESULT, MCP_APPS),
    # The older form of `ui.resourceUri`.
    MetaKey("ui/resourceUri", UI_URI, _TOOL, MCP_APPS),
    # How callers log in; a tool with gates has it without `meta=`.
    MetaKey("securitySchemes", SCHEMES, ("tool",), APPS_SDK),
    # The page that shows the reply.
    MetaKey("openai/outputTemplate", UI_URI, _TOOL_AND_RESULT, APPS_SDK),
    # Whether the page may call the tool.
    MetaKey("openai/widgetAccessible", FLAG, _TOOL_AND_RESULT, APPS_SDK),
    # Whether the model sees the tool.
    MetaKey("openai/visibility", _one_of("public", "private"), _TOOL, APPS_SDK),
    # What the host shows while the tool runs.
    MetaKey("openai/toolInvocation/invoking", STATUS, _TOOL_AND_RESULT, APPS_SDK),
    # What the host shows afterwards.
    MetaKey("openai/toolInvocation/invoked", STATUS, _TOOL_AND_RESULT, APPS_SDK),
    # The arguments that are files.
    MetaKey("openai/fileParams", TEXTS, _TOOL, APPS_SDK),
    # From older examples; hosts no longer need it.
    MetaKey("openai/resultCanProduceWidget", FLAG, _TOOL_AND_RESULT, APPS_SDK_EXAMPLES),
    # Describes to the model what the page shows.
    MetaKey("openai/widgetDescription", TEXT, _WIDGET, APPS_SDK),
    # Whether the page wants a border.
    MetaKey("openai/widgetPrefersBorder", FLAG, _WIDGET, APPS_SDK),
    # The origins that the page may use.
    MetaKey("openai/widgetCSP", OPENAI_CSP, _WIDGET, APPS_SDK),
    # An origin of the page's own.
    MetaKey("openai/widgetDomain", ORIGIN, _WIDGET, APPS_SDK),
    # The page on which the reply is shown.
    MetaKey("openai/widgetSessionId", TEXT, ("result", "block", "request"), APPS_SDK),
    # From older examples; a page now closes itself.
    MetaKey("openai/closeWidget", FLAG, _RESULT, APPS_SDK_EXAMPLES),
    # How to log in, for hosts that read it in the result.
    MetaKey("mcp/www_authenticate", CHALLENGES, _RESULT, APPS_SDK),
    # The user's language tag, such as en-GB.
    MetaKey("openai/locale", TEXT, _REQUEST, APPS_SDK),
    # The program of the user.
    MetaKey("openai/userAgent", TEXT, _REQUEST, APPS_SDK),
    # Roughly where the user is.
    MetaKey("openai/userLocation", LOCATION, _REQUEST, APPS_SDK),
    # An anonymous name for the user.
    MetaKey("openai/subject", TEXT, _REQUEST, APPS_SDK),
    # An anonymous name for the conversation.
    MetaKey("openai/session", TEXT, _REQUEST, APPS_SDK),
    # An anonymous name for the user's organization.
    MetaKey("openai/organization", TEXT, _REQUEST, APPS_SDK),
)
"""The `apps` convention puts widget keys into results, so they may occur there too."""
