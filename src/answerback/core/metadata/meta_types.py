"""The types of `_meta` for type checkers: one TypedDict for each place where keys of hosts stand.

An author's own keys are added in a subclass. The values are checked when they are given, by the
table in `key_table`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict


class NoAuthScheme(TypedDict):
    """The tool serves callers who are not logged in."""

    type: Literal["noauth"]


class OAuth2Scheme(TypedDict):
    """The tool needs an access token with these scopes."""

    type: Literal["oauth2"]
    scopes: NotRequired[Sequence[str]]


SecurityScheme: TypeAlias = NoAuthScheme | OAuth2Scheme


class UiCsp(TypedDict, total=False):
    """The origins that a widget may use, as MCP Apps writes them."""

    connectDomains: Sequence[str]
    resourceDomains: Sequence[str]
    frameDomains: Sequence[str]
    baseUriDomains: Sequence[str]


class OpenAICsp(TypedDict, total=False):
    """The origins that a widget may use, as ChatGPT writes them."""

    connect_domains: Sequence[str]
    resource_domains: Sequence[str]
    frame_domains: Sequence[str]
    redirect_domains: Sequence[str]


class EmptyObject(TypedDict):
    """An object without members, which MCP Apps uses as a mark."""


class UiPermissions(TypedDict, total=False):
    """The features of the browser that a widget asks for."""

    camera: EmptyObject
    microphone: EmptyObject
    geolocation: EmptyObject
    clipboardWrite: EmptyObject


class ToolUi(TypedDict, total=False):
    """`_meta.ui` of a tool."""

    resourceUri: str
    visibility: Sequence[Literal["model", "app"]]


class ResourceUi(TypedDict, total=False):
    """`_meta.ui` of a widget's resource and of its content."""

    csp: UiCsp
    permissions: UiPermissions
    domain: str
    prefersBorder: bool


class ResultUi(ToolUi, ResourceUi, total=False):
    """`_meta.ui` of a result."""


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
    """The keys that hosts read in the `_meta` of a tool: `@app.tool(meta=…)`."""

    ui: ToolUi


class ResultMeta(_ToolAndResultKeys, _WidgetKeys, _ResultKeys, total=False):
    """The keys that hosts read in the `_meta` of a result: `success(meta=…)`.

    A subclass adds keys of the author's, and `Reply[Data, ThatSubclass]` declares both.
    """

    ui: ResultUi


class ResourceMeta(_WidgetKeys, total=False):
    """The keys that hosts read in the `_meta` of a widget's resource and of its content."""

    ui: ResourceUi


class UserLocation(TypedDict, total=False):
    """A rough location, as a client sends it."""

    city: str
    region: str
    country: str
    timezone: str
    longitude: float
    latitude: float


_RequestKeys = TypedDict(
    "_RequestKeys",
    {
        "openai/locale": str,
        "openai/userAgent": str,
        "openai/userLocation": UserLocation,
        "openai/subject": str,
        "openai/session": str,
        "openai/organization": str,
        "openai/widgetSessionId": str,
    },
    total=False,
)


class RequestMeta(_RequestKeys, total=False):
    """The keys that ChatGPT sends in the `_meta` of a request; `ctx.request.hints` reads them."""
