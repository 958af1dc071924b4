"""Widget: a page registered as a resource, with everything hosts need to know about it.

Its HTML is completed with the bridge and with the origins that it may use. Tools name their widget
in `meta`, using the keys of both MCP Apps and ChatGPT.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

import msgspec

from ..calls.context import current_runtime
from ..core.author_errors import did_you_mean, similar_names
from ..core.json_value import JsonObject
from ..core.request_info import HOST_NAMES, HostName, page_domain
from ..errors import Unavailable
from ..options import Shown
from ..registry.declarations import Change, Registry, put_resource
from ..tools.resource import Resource, ResourceOptions
from ..tools.tool import Tool
from ..tools.tool_options import ToolOptions, check_options

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo


_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_ORIGIN = re.compile(rf"https://(\*\.)?{_HOST}{_PORT}")
_SOCKET = re.compile(rf"wss://(\*\.)?{_HOST}{_PORT}")
_LOCAL = re.compile(rf"(http|ws)://(localhost|127\.0\.0\.1|\[::1\]){_PORT}")
_WITHIN = re.compile(r"(?:[a-z]+:)?(?://)?([^/?#\s@]+)(?:[/?#].*|\s*)", re.IGNORECASE | re.DOTALL)


class CSP(msgspec.Struct, frozen=True, kw_only=True):
    """The origins that a widget may use, such as `CSP(connect=["https://api.example.com"])`."""

    connect: Collection[str] = ()
    """For `fetch`, `XMLHttpRequest` and web sockets."""
    resources: Collection[str] = ()
    """For images, scripts, style sheets, fonts and media."""
    frames: Collection[str] = ()
    """For frames within the page."""
    base_uris: Collection[str] = ()
    """For the page's `<base>`."""
    redirects: Collection[str] = ()
    """For links that ChatGPT opens without asking; other hosts ignore them."""

    def __post_init__(self) -> None:
        for name, origins in msgspec.structs.asdict(self).items():
            if isinstance(origins, str) or not isinstance(origins, Collection):
                raise TypeError(f"{name}={origins!r} should be a list of origins, such as {_LIST}")
            for origin in origins:
                check_origin(origin, f"{name} of CSP", sockets=name == "connect")
            # Sort sets, so that a server's lists are always in the same order.
            is_set = isinstance(origins, set | frozenset)
            msgspec.structs.force_setattr(self, name, tuple(sorted(origins) if is_set else origins))


_LIST = "['https://api.example.com']"


def check_origin(
    origin: object, what: str, *, sockets: bool = False, wildcards: bool = True
) -> None:
    """Raise TypeError or ValueError if a value is not an origin; http is only for this machine."""
    if not isinstance(origin, str):
        raise TypeError(f"{what} should be an origin such as 'https://example.com', not {origin!r}")
    is_socket = origin.startswith(("wss:", "ws:"))
    if _is_origin(origin) and (sockets or not is_socket) and (wildcards or "*" not in origin):
        return
    # The origin that the author probably meant.
    within = _WITHIN.fullmatch(origin.lower())
    scheme = "wss" if sockets and is_socket else "https"
    meant = f"{scheme}://{within[1]}" if within else ""
    hint = "write 'https://example.com' or 'https://*.example.com'"
    if _is_origin(meant):
        hint = f"write {meant!r}"
    raise ValueError(f"{what} has {origin!r}, which is not an origin; {hint}")


def _is_origin(text: str) -> bool:
    found = _ORIGIN.fullmatch(text) or _SOCKET.fullmatch(text) or _LOCAL.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 443) < 65536


_BRIDGE = os.path.join(os.path.dirname(__file__), "widgets", "bridge.js")
_DOCTYPE = "<!doctype html>"
_BEGINS = tuple(
    # A tag within a comment is skipped, because the comment matches first.
    re.compile(rf"<!--.*?-->|({tag})", re.IGNORECASE | re.DOTALL)
    for tag in (r"<head(?:\s[^>]*)?>", r"<html(?:\s[^>]*)?>", r"<!doctype[^>]*>")
)
"""The tags that a page's first script can follow, best first."""
_END_OF_SCRIPT = re.compile("</(?=script)", re.IGNORECASE)


class WidgetPage:
    """One widget's page. In development mode its file is reread each time."""

    def __init__(
        self, registry: Registry, uri: str, source: str, file: str | None, *, bridge: bool
    ) -> None:
        self._registry = registry
        self._uri = uri
        self._bridge = bridge
        self._source = source
        self._html = _completed(source, bridge=bridge)
        self.file = file
        """The page's file; None if the author passed the HTML itself."""

    def read(self) -> str:
        """Return the HTML for hosts; notify the resource's subscribers if the file has changed."""
        running = current_runtime()
        if self.file is not None and running is not None and running.development:
            try:
                source = read_html(self.file)
            except ValueError as exc:
                raise Unavailable(f"widget: {exc}") from None
            if source != self._source:
                self._source, self._html = source, _completed(source, bridge=self._bridge)
                self._registry.changes.publish(Change("resource", self._uri))
        return self._html


def read_html(file: str) -> str:
    """Return an HTML file's text; raises ValueError if it is unreadable or not HTML."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            text = opened.read()
    except OSError as exc:
        raise ValueError(f"cannot read {file!r}: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file!r} is not UTF-8; save it as UTF-8") from None
    if "<" not in text:
        raise ValueError(f"{file!r} has no HTML in it")
    return text


def check_html(html: object) -> str:
    """Return the text; raises TypeError or ValueError if it is not HTML."""
    if not isinstance(html, str):
        raise TypeError(f"html should be the text of a page, not {type(html).__name__}")
    if "<" not in html:
        hint = f"write path={html!r} for a file" if html.endswith((".html", ".htm")) else _EXAMPLE
        raise ValueError(f"html has no HTML in it; {hint}")
    try:
        html.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"html has a character that UTF-8 cannot encode, at {exc.start}") from None
    return html


_EXAMPLE = "write the page, such as '<h1>Accounts</h1>'"


def _completed(source: str, *, bridge: bool) -> str:
    """Return the page with a doctype, and the bridge as its first script."""
    if _place(source, _BEGINS[-1]) is None:
        source = f"{_DOCTYPE}\n{source}"
    script = ""
    if bridge:
        with open(_BRIDGE, encoding="utf-8") as opened:
            # The HTML parser would end the script at the first `</script`, even within a string.
            code = _END_OF_SCRIPT.sub(r"<\\/", opened.read())
        # Inline, because every host's CSP allows that.
        script = f"<script>\n{code}</script>\n"
    places = (_place(source, tag) for tag in _BEGINS)
    place = next(place for place in places if place is not None)
    return source[:place] + script + source[place:]


def _place(source: str, tag: re.Pattern[str]) -> int | None:
    """Return the end of the first matching tag outside comments."""
    return next((found.end() for found in tag.finditer(source) if found[1]), None)


MIME = "text/html;profile=mcp-app"
PERMISSIONS = ("camera", "microphone", "geolocation", "clipboardWrite")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class WidgetOptions(TypedDict, total=False):
    """Options for `app.widget`."""

    html: str
    """The page's HTML."""
    path: str | os.PathLike[str]
    """The page's file; a relative path is relative to the file that calls `app.widget`."""
    csp: CSP
    """The origins the page may use; none by default."""
    domain: str
    """Your own origin for ChatGPT, such as "https://accounts.example.com"."""
    border: bool
    """Whether the host should draw a border; by default it decides."""
    description: str
    """Describes the page to people, and to the model in ChatGPT."""
    permissions: Collection[str]
    """Any of "camera", "microphone", "geolocation" and "clipboardWrite"."""
    host: HostName
    """Send the format for this host to every client; by default the host is detected."""
    requires: Sequence[Callable[..., Any]]
    """The page's gates; its tools' gates do not apply to it."""
    bridge: bool
    """Insert the script that connects the page to its host; True by default."""


def widget_uri(name: str) -> str:
    return f"ui://widget/{name}.html"


class Widget(Resource):
    """A widget's resource."""

    noun = "widget"
    is_widget = True

    def __init__(
        self, app: Registry, name: object, options: WidgetOptions, author: str | None
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} cannot be the name of a widget; "
                "use 1 to 64 of the characters A-Z a-z 0-9 _ -, as in app.widget('accounts')"
            )
        if (options.get("html") is None) == (options.get("path") is None):
            raise TypeError(
                f"widget {name!r} needs either html= with the text of the page, "
                "or path= with its file"
            )
        self._host = host = options.get("host")
        if host is not None and host not in HOST_NAMES:
            raise ValueError(f"host={host!r} should be one of {', '.join(map(repr, HOST_NAMES))}")
        for option in ("border", "bridge"):
            value = options.get(option)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"{option}={value!r} should be True or False")
        source, file = _source(name, options, author)
        self._ui, self._openai = _page_keys(options)
        uri = widget_uri(name)
        self.page = WidgetPage(app, uri, source, file, bridge=options.get("bridge", True))
        given = {
            "name": name,
            "mime": MIME,
            "description": options.get("description"),
            "meta": {"ui": self._ui, **self._openai},
            "requires": options.get("requires"),
            "inline": True,
        }
        super().__init__(uri, self.page.read, cast("ResourceOptions", given), app.contract)

    def meta_of_content(self, endpoint: str, request: RequestInfo | None) -> JsonObject:
        """Return the content's `_meta`: the listed one and, for Claude, the page's domain."""
        domain = page_domain(endpoint, request, self._host)
        ui = self._ui if domain is None else {**self._ui, "domain": domain}
        return {"ui": ui, **self._openai}


def add_widget(app: Registry, name: object, options: WidgetOptions, author: str | None) -> Widget:
    """Register a widget; raises TypeError or ValueError if an option is wrong."""
    check_options(options, WidgetOptions)
    widget = Widget(app, name, options, author)
    if widget.uri in app.resources.own:
        raise ValueError(f"there is already a widget {name!r}; give one a different name")
    put_resource(app, widget)
    return widget


def _source(name: str, options: WidgetOptions, author: str | None) -> tuple[str, str | None]:
    """Return the page's HTML, and its file if any; *author* is the file that registers it."""
    path = options.get("path")
    if path is None:
        return check_html(options.get("html")), None
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path={path!r} should be the name of a file, such as 'accounts.html'")
    file = os.path.join(os.path.dirname(os.path.abspath(author or "_")), os.fspath(path))
    if not os.path.isfile(file):
        raise ValueError(f"widget {name!r}: there is no file {file!r}")
    return read_html(file), file


def _page_keys(options: WidgetOptions) -> tuple[JsonObject, JsonObject]:
    """Return the page's MCP Apps keys, ChatGPT's equivalents, and keys that only ChatGPT has."""
    csp: object = options.get("csp")
    csp = CSP() if csp is None else csp
    if not isinstance(csp, CSP):
        raise TypeError(
            f"csp={csp!r} should be a CSP, such as CSP(connect=['https://example.com'])"
        )
    # The first two are always present, even if empty.
    ui_csp = {"connectDomains": list(csp.connect), "resourceDomains": list(csp.resources)}
    openai_csp = {"connect_domains": list(csp.connect), "resource_domains": list(csp.resources)}
    if csp.frames:
        ui_csp["frameDomains"] = openai_csp["frame_domains"] = list(csp.frames)
    if csp.base_uris:
        ui_csp["baseUriDomains"] = list(csp.base_uris)
    if csp.redirects:
        openai_csp["redirect_domains"] = list(csp.redirects)
    ui: JsonObject = {"csp": ui_csp}
    openai: JsonObject = {"openai/widgetCSP": openai_csp}
    if permissions := _permissions(options.get("permissions") or ()):
        ui["permissions"] = permissions
    if description := options.get("description"):
        openai["openai/widgetDescription"] = description
    if (border := options.get("border")) is not None:
        ui["prefersBorder"] = openai["openai/widgetPrefersBorder"] = border
    if (domain := options.get("domain")) is not None:
        check_origin(domain, "domain", wildcards=False)
        openai["openai/widgetDomain"] = domain
    return ui, openai


def _permissions(given: Collection[str]) -> dict[str, JsonObject]:
    if isinstance(given, str) or not isinstance(given, Collection):
        raise TypeError(f"permissions={given!r} should be a set, such as {{'camera'}}")
    for name in given:
        if name not in PERMISSIONS:
            spelt = str(name).replace("-", "").replace("_", "").lower()
            near = [each for each in PERMISSIONS if each.lower() == spelt]
            hint = f"write {near[0]!r}" if near else f"use one of {', '.join(PERMISSIONS)}"
            raise ValueError(f"no permission is named {name!r}; {hint}")
    return {name: {} for name in PERMISSIONS if name in given}


_ON_THE_PAGE = ("csp", "permissions", "domain", "prefersBorder")
"""Members of `ui` that belong to a widget; hosts ignore them on a tool."""


class MissingWidget(ValueError):
    """A tool names a widget that its app does not have."""


def with_widget_keys(options: ToolOptions) -> ToolOptions:
    """Return a tool's options with its widget's keys in `meta`, and with the hints.

    Raises TypeError or ValueError if `meta` cannot hold these keys.
    """
    made: ToolOptions = {**options}
    widget = options.get("widget")
    shown = widget if isinstance(widget, Shown) else Shown(widget)
    if meta := _merged(options.get("meta") or {}, _keys(shown)):
        made["meta"] = meta
    if shown.name is not None:
        read_only = bool(options.get("read_only"))
        defaults = {"read_only": False, "destructive": not read_only, "open_world": True}
        for name, default in defaults.items():
            if options.get(name) is None:
                made[name] = default  # type: ignore[literal-required]  # keys of ToolOptions
    return made


def _keys(shown: Shown) -> JsonObject:
    """Return the MCP Apps keys and ChatGPT's equivalents."""
    ui: JsonObject = {}
    keys: JsonObject = {"ui": ui}
    if (name := shown.name) is not None:
        uri = widget_uri(name)
        ui["resourceUri"] = uri
        keys |= {"ui/resourceUri": uri, "openai/outputTemplate": uri}
    visible = shown.visible_to
    if name is not None or visible is not None:
        visible = ("model", "app") if visible is None else visible
        ui["visibility"] = [who for who in ("model", "app") if who in visible]
        keys["openai/widgetAccessible"] = "app" in visible
        keys["openai/visibility"] = "public" if "model" in visible else "private"
    if shown.invoking is not None:
        keys["openai/toolInvocation/invoking"] = shown.invoking
    if shown.invoked is not None:
        keys["openai/toolInvocation/invoked"] = shown.invoked
    return keys if ui else {name: value for name, value in keys.items() if name != "ui"}


def _merged(meta: Mapping[str, Any], keys: JsonObject) -> JsonObject:
    """Return the author's `meta` with our keys; raises ValueError if both have the same key."""
    authors_ui = meta.get("ui", {})
    if not isinstance(authors_ui, dict):
        raise TypeError(f"'ui' in meta should be a dict, not {authors_ui!r}")
    for name in _ON_THE_PAGE:
        if name in authors_ui:
            raise ValueError(f"meta has 'ui' with {name!r}, which belongs to app.widget(…)")
    ours = keys.get("ui", {})
    twice = [name for name in meta if name in keys and name != "ui"]
    twice += [f"ui.{name}" for name in authors_ui if name in ours]
    if twice:
        raise ValueError(f"meta has {twice[0]!r}, which widget= writes; leave it out of meta")
    merged = {**meta, **keys}
    if authors_ui or ours:
        merged["ui"] = {**authors_ui, **ours}
    return merged


def missing_widget(tool: Tool) -> str | None:
    """Return a message if a tool names a widget that its app does not have."""
    name = tool.settings.widget
    if name is None:
        return None
    owner = tool.path[-1]
    resources = owner.resources.own
    if widget_uri(name) in resources:
        return None
    known = [each.name for each in resources.values() if isinstance(each, Widget)]
    hint = did_you_mean(similar_names(name, known))
    if not hint:
        there = f"its widgets are {', '.join(sorted(known))}" if known else "it has none"
        hint = f"{there}; write app.widget({name!r}, path='{name}.html')"
    return f"{tool.owner} names the widget {name!r}, which {owner.name!r} does not have; {hint}"


def check_widgets(registry: Registry) -> None:
    """Raise MissingWidget if a served tool names an unknown widget or page."""
    for tool in registry.tools.values():
        message = missing_widget(tool)
        meta = tool.settings.meta or {}
        ui = meta.get("ui", {})
        page = meta.get("openai/outputTemplate") or ui.get("resourceUri")
        if message is None and page is not None and tool.settings.widget is None:
            known = registry.resources.values()
            if all(each.uri != page and each.arguments_for(page) is None for each in known):
                advice = f"write app.widget('NAME', …) and widget='NAME', or app.resource({page!r})"
                message = f"{tool.owner} names the page {page!r}, which is not a resource; {advice}"
        if message is not None:
            raise MissingWidget(message)
