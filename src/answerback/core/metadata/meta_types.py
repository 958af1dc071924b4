"""The types of `_meta` for type checkers: one TypedDict for each place where hosts' keys occur.

A subclass adds an author's own keys. The values are checked when they are given, against the
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
