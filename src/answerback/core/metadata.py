"""`_meta`: the keys that hosts know, their types, and a check for authors' keys."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import msgspec

from .author_errors import did_you_mean
from .json_value import is_number

APPS_SDK = "Apps SDK reference, 2026-06-27"
"""developers.openai.com/apps-sdk/reference as of that day."""
APPS_SDK_EXAMPLES = "examples of the Apps SDK, 2025-10; no longer in its reference"
MCP_APPS = "MCP Apps 2026-01-26, ext-apps 2.0.4"

Place: TypeAlias = Literal["tool", "result", "resource", "content", "block", "request"]
"""The object that the `_meta` belongs to.

"resource" is an entry in a list, "content" is sent by `resources/read` or held by an embedded
resource, and "block" is any other content block.
"""


class ValueKind(msgspec.Struct, frozen=True, kw_only=True):
    """The values that a key may have; `expected` describes them in messages."""

    expected: str
    is_valid: Callable[[Any], bool]
    members: Mapping[str, ValueKind] = {}
    """An object's members."""
    elsewhere: Mapping[str, str] = {}
    """Members that belong elsewhere, and where they belong, for a message."""


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
OPENAI_VISIBILITY = ValueKind(
    expected="'public' or 'private'", is_valid=lambda value: value in ("public", "private")
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
    # What a widget's page may use, and how it is shown.
    MetaKey("ui", RESOURCE_UI, ("resource", "content"), MCP_APPS),
    # The same for one result.
    MetaKey("ui", RESULT_UI, _RESULT, MCP_APPS),
    # The older form of `ui.resourceUri`.
    MetaKey("ui/resourceUri", UI_URI, _TOOL, MCP_APPS),
    # How callers log in; set automatically for a tool with gates.
    MetaKey("securitySchemes", SCHEMES, ("tool",), APPS_SDK),
    # The page that shows the reply.
    MetaKey("openai/outputTemplate", UI_URI, _TOOL_AND_RESULT, APPS_SDK),
    # Whether the page may call the tool.
    MetaKey("openai/widgetAccessible", FLAG, _TOOL_AND_RESULT, APPS_SDK),
    # Whether the model sees the tool.
    MetaKey("openai/visibility", OPENAI_VISIBILITY, _TOOL, APPS_SDK),
    # What the host shows while the tool runs.
    MetaKey("openai/toolInvocation/invoking", STATUS, _TOOL_AND_RESULT, APPS_SDK),
    # What the host shows after the tool has run.
    MetaKey("openai/toolInvocation/invoked", STATUS, _TOOL_AND_RESULT, APPS_SDK),
    # The arguments that are files.
    MetaKey("openai/fileParams", TEXTS, _TOOL, APPS_SDK),
    # From older examples; hosts no longer need it.
    MetaKey("openai/resultCanProduceWidget", FLAG, _TOOL_AND_RESULT, APPS_SDK_EXAMPLES),
    # Describes the page to the model.
    MetaKey("openai/widgetDescription", TEXT, _WIDGET, APPS_SDK),
    # Whether the page wants a border.
    MetaKey("openai/widgetPrefersBorder", FLAG, _WIDGET, APPS_SDK),
    # The origins that the page may use.
    MetaKey("openai/widgetCSP", OPENAI_CSP, _WIDGET, APPS_SDK),
    # The page's own origin.
    MetaKey("openai/widgetDomain", ORIGIN, _WIDGET, APPS_SDK),
    # The page that the reply is shown on.
    MetaKey("openai/widgetSessionId", TEXT, ("result", "block", "request"), APPS_SDK),
    # From older examples; a page now closes itself.
    MetaKey("openai/closeWidget", FLAG, _RESULT, APPS_SDK_EXAMPLES),
    # How to log in, for hosts that read it in the result.
    MetaKey("mcp/www_authenticate", CHALLENGES, _RESULT, APPS_SDK),
    # The user's language, such as en-GB.
    MetaKey("openai/locale", TEXT, _REQUEST, APPS_SDK),
    # The user's client, as a user agent string.
    MetaKey("openai/userAgent", TEXT, _REQUEST, APPS_SDK),
    # Roughly where the user is.
    MetaKey("openai/userLocation", LOCATION, _REQUEST, APPS_SDK),
    # An anonymous id for the user.
    MetaKey("openai/subject", TEXT, _REQUEST, APPS_SDK),
    # An anonymous id for the conversation.
    MetaKey("openai/session", TEXT, _REQUEST, APPS_SDK),
    # An anonymous id for the user's organization.
    MetaKey("openai/organization", TEXT, _REQUEST, APPS_SDK),
)
"""The `apps` convention puts widget keys into results, so they may occur there too."""


class NoAuthScheme(TypedDict):
    """The tool serves callers who are not logged in."""

    type: Literal["noauth"]


class OAuth2Scheme(TypedDict):
    """The tool needs an access token with these scopes."""

    type: Literal["oauth2"]
    scopes: NotRequired[Sequence[str]]


SecurityScheme: TypeAlias = NoAuthScheme | OAuth2Scheme


class UiCsp(TypedDict, total=False):
    """The origins that a widget may use, in MCP Apps' format."""

    connectDomains: Sequence[str]
    resourceDomains: Sequence[str]
    frameDomains: Sequence[str]
    baseUriDomains: Sequence[str]


class OpenAICsp(TypedDict, total=False):
    """The origins that a widget may use, in ChatGPT's format."""

    connect_domains: Sequence[str]
    resource_domains: Sequence[str]
    frame_domains: Sequence[str]
    redirect_domains: Sequence[str]


class EmptyObject(TypedDict):
    """An object without members, which MCP Apps uses as a marker."""


class UiPermissions(TypedDict, total=False):
    """The browser features that a widget asks for."""

    camera: EmptyObject
    microphone: EmptyObject
    geolocation: EmptyObject
    clipboardWrite: EmptyObject


class ToolUi(TypedDict, total=False):
    """A tool's `_meta.ui`."""

    resourceUri: str
    visibility: Sequence[Literal["model", "app"]]


class ResourceUi(TypedDict, total=False):
    """The `_meta.ui` of a widget's resource and of its content."""

    csp: UiCsp
    permissions: UiPermissions
    domain: str
    prefersBorder: bool


class ResultUi(ToolUi, ResourceUi, total=False):
    """A result's `_meta.ui`."""


_ToolAndResultKeys = TypedDict(
    "_ToolAndResultKeys",
    {
        "openai/outputTemplate": str,
        "openai/widgetAccessible": bool,
        "openai/toolInvocation/invoking": str,
        "openai/toolInvocation/invoked": str,
        "openai/resultCanProduceWidget": bool,
    },
    total=False,
)
_ToolKeys = TypedDict(
    "_ToolKeys",
    {
        "securitySchemes": Sequence[SecurityScheme],
        "ui/resourceUri": str,
        "openai/visibility": Literal["public", "private"],
        "openai/fileParams": Sequence[str],
    },
    total=False,
)
_WidgetKeys = TypedDict(
    "_WidgetKeys",
    {
        "openai/widgetDescription": str,
        "openai/widgetPrefersBorder": bool,
        "openai/widgetCSP": OpenAICsp,
        "openai/widgetDomain": str,
    },
    total=False,
)
_ResultKeys = TypedDict(
    "_ResultKeys",
    {
        "mcp/www_authenticate": str | Sequence[str],
        "openai/widgetSessionId": str,
        "openai/closeWidget": bool,
    },
    total=False,
)


class ToolMeta(_ToolAndResultKeys, _ToolKeys, total=False):
    """The keys that hosts read in a tool's `_meta`: `@app.tool(meta=…)`."""

    ui: ToolUi
    """The widget's page, and who may call the tool."""


class ResultMeta(_ToolAndResultKeys, _WidgetKeys, _ResultKeys, total=False):
    """The keys that hosts read in a result's `_meta`: `success(meta=…)`.

    A subclass adds the author's keys, and `Reply[Data, ThatSubclass]` declares both.
    """

    ui: ResultUi
    """The page that shows this result."""


class ResourceMeta(_WidgetKeys, total=False):
    """The keys that hosts read in the `_meta` of a widget's resource and of its content."""

    ui: ResourceUi
    """The origins, permissions and border of a widget's page."""


_PREFIXES = ("openai/", "mcp/", "ui/")
_NAMES = frozenset(key.name for key in KEYS)
_BY_PLACE = {(key.name, place): key for key in KEYS for place in key.places}
_NOUNS: dict[Place, str] = {
    "tool": "a tool",
    "result": "a result",
    "resource": "a resource",
    "content": "the content of a resource",
    "block": "a content block",
    "request": "a request",
}
_GIVEN_BY: dict[Place, str] = {
    "tool": "@app.tool(meta=…)",
    "result": "success(meta=…) or failure(meta=…)",
    "content": "app.widget(…) or app.resource(uri, content_meta=…)",
}
"""How an author sets a key, by the first place where it may occur."""

_SENT_BY_CLIENTS = "clients send it; read it from ctx.request.hints"


def _warn(message: str) -> None:
    """Warn at the author's line: the nearest one outside this package."""
    package = __name__.partition(".")[0]
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


def check_meta(
    meta: object,
    place: Place,
    argument: str = "meta",
    *,
    misspelt: Callable[[str], None] = _warn,
) -> None:
    """Raise TypeError or ValueError if a host key is misplaced or has a wrong value.

    *argument* is the name of the author's parameter. A value that is not a dict is not checked
    here: it is rejected later, along with the reply or the tool's options. *misspelt* receives
    the message about a key that is probably misspelt.
    """
    if not isinstance(meta, dict):
        return
    for name, value in meta.items():
        if name in _NAMES or (isinstance(name, str) and name.lower().startswith(_PREFIXES)):
            key = _BY_PLACE.get((name, place))
            if key is not None:
                _check_value(value, key.kind, f"{argument}[{name!r}]")
            elif name in _NAMES:
                first = next(each.places[0] for each in KEYS if each.name == name)
                right = f"set it in {_GIVEN_BY[first]}" if first in _GIVEN_BY else _SENT_BY_CLIENTS
                raise ValueError(f"{name!r} does not belong on {_NOUNS[place]}; {right}")
            elif (near := _near_key(name)) is not None:
                misspelt(f"no known metadata key is named {name!r}; {did_you_mean([near])}")


def _check_value(value: Any, kind: ValueKind, path: str) -> None:
    if not kind.is_valid(value):
        shown = repr(value)
        shown = shown if len(shown) <= 100 else f"{shown[:97]}..."
        raise TypeError(f"{path} should be {kind.expected}, not {shown}")
    if not kind.members:
        return
    for name, member in value.items():
        if name in kind.members:
            _check_value(member, kind.members[name], f"{path}[{name!r}]")
        elif name in kind.elsewhere:
            raise ValueError(f"{path} has {name!r}, which belongs on {kind.elsewhere[name]}")
        elif (near := _near(str(name), kind.members)) is not None:
            raise ValueError(f"{path} has no member {name!r}; {did_you_mean([near])}")


@lru_cache(256)
def _near_key(name: str) -> str | None:
    """Call `_near` and cache the result, because every reply may have the same unknown host key."""
    return _near(name, sorted(_NAMES))


def _near(name: str, known: Iterable[str]) -> str | None:
    wanted = _plain(name)
    likeness, near = max((_likeness(wanted, _plain(each)), each) for each in known)
    return near if likeness >= 0.8 else None


def _likeness(one: str, other: str) -> float:
    """Return how similar two names are, from 0 to 1; each part between slashes must be similar.

    Names with different prefixes are not similar: they belong to different hosts.
    """
    parts, others = one.split("/"), other.split("/")
    if len(parts) > 1 and parts[0] != others[0]:
        return 0.0
    if parts[-1] == others[-1]:
        return 1.0
    if len(parts) != len(others):
        return 0.0
    from difflib import SequenceMatcher

    pairs = zip(parts, others, strict=True)
    return min(SequenceMatcher(None, part, each).ratio() for part, each in pairs)


def _plain(name: str) -> str:
    """Return the name in lower case without separators: hosts use both styles."""
    return name.lower().replace("_", "").replace("-", "")
