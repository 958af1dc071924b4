"""Resources: functions whose result clients read, at one URI or at a template's URIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..contract import Contract
from ..core.author_errors import did_you_mean, similar_names
from ..core.content import Annotations, Embedded
from ..core.reply import Reply
from ..types.output import Output
from ..types.problems import InvalidOutput
from .tool import Tool, check_free_name
from .tool_options import CommonOptions
from .uri_template import UriTemplate

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*\Z")


class ResourceOptions(CommonOptions, total=False):
    """The options of `@app.resource`."""

    mime: str
    """The media type of the contents."""
    size: int
    """The contents' size in bytes, if it is known."""
    annotations: Annotations
    """Audience, priority and last change, for hosts."""
    content_meta: Mapping[str, Any]
    """The `_meta` of the contents that `resources/read` sends, where hosts read a widget's."""
    allow_paths: Sequence[str]
    """The parameters that may be any path; the others cannot leave a folder, as `../x` does."""


class Resource(Tool):
    """A function that returns a URI's contents: text, bytes, or data for JSON."""

    noun = "resource"
    _check_name = staticmethod(check_free_name)

    def __init__(
        self, uri: str, fn: Callable[..., Any], options: ResourceOptions, contract: Contract
    ) -> None:
        self.uri = uri
        self.template = UriTemplate(uri) if "{" in uri else None
        self.mime = options.get("mime")
        self.size = options.get("size")
        self.annotations = options.get("annotations")
        self.content_meta = options.get("content_meta")
        if self.content_meta is not None:
            from ..core.metadata import check_meta

            check_meta(self.content_meta, "content", "content_meta")
        super().__init__(fn, {"lenient": True, "returns": "value", **options}, contract)
        self._check_variables()
        self._any_path = frozenset(options.get("allow_paths") or ())
        self._check_allowed_paths()

    @property
    def public_name(self) -> str:
        return self.uri

    def arguments_for(self, uri: str) -> bytes | None:
        """Return the function's arguments for *uri* as JSON, or None if *uri* does not match.

        A URI with a value that would leave its folder does not match.
        """
        if self.template is None:
            return b"{}" if uri == self.uri else None
        values = self.template.match(uri)
        if values is None:
            return None
        pairs = [
            (name, value if isinstance(value, str) else ",".join(value))
            for name, value in values.items()
        ]
        arguments = self.signature.from_strings(pairs)
        # The texts before and after reading: types may split a text, read JSON, or encode it.
        if any(
            _leaves_its_folder(values[name]) or _leaves_its_folder(arguments[name])
            for name in values.keys() - self._any_path
        ):
            return None
        return msgspec.json.encode(arguments)

    def meta_of_content(self, endpoint: str, request: RequestInfo | None) -> Mapping[str, Any]:
        """Return each content's `_meta`; a widget's depends on the endpoint's URL."""
        return self.content_meta or {}

    def _check_variables(self) -> None:
        parameters = {parameter.name for parameter in self.signature.parameters}
        variables = set(self.template.variables) if self.template else set()
        if parameters != variables:
            missing = ", ".join(f"{name}: str" for name in sorted(variables - parameters))
            extra = ", ".join(f"{{{name}}}" for name in sorted(parameters - variables))
            steps = [f"add {missing} to the function's parameters"] if missing else []
            steps += [f"add {extra} to the URI, or remove the parameter"] if extra else []
            raise TypeError(
                f"resource {self.uri!r} has the variables {sorted(variables)}, "
                f"and its function the parameters {sorted(parameters)}; {'; '.join(steps)}"
            )

    def _check_allowed_paths(self) -> None:
        known = [parameter.name for parameter in self.signature.parameters]
        for name in self._any_path.difference(known):
            names = ", ".join(map(repr, known)) or "none"
            hint = did_you_mean(similar_names(name, known)) or f"there is {names}"
            raise ValueError(f"allow_paths: no parameter is named {name!r}; {hint}")


def _leaves_its_folder(value: object) -> bool:
    """Return whether *value*, or a text in a list or object, is a path out of its folder.

    Such paths have more `..` than folders before them, are absolute, or have a drive or a NUL.
    Both `/` and a backslash separate, because Windows accepts both.
    """
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            if _is_outside(each):
                return True
        elif isinstance(each, dict):
            waiting += (*each.keys(), *each.values())
        elif isinstance(each, list):
            waiting += each
    return False


def _is_outside(text: str) -> bool:
    has_drive = text[1:2] == ":" and text[0].isascii() and text[0].isalpha()
    if has_drive or "\0" in text or text.startswith(("/", "\\")):
        return True
    depth = 0
    for part in text.replace("\\", "/").split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


def check_uri(uri: object) -> None:
    """Raise TypeError or ValueError for a value that is not a URI with a scheme."""
    if callable(uri):
        raise TypeError("@app.resource takes a URI: @app.resource('config://app')")
    if not isinstance(uri, str) or not _URI.match(uri):
        raise ValueError(f"{uri!r} is not a URI; write one with a scheme, such as 'config://app'")


def contents_of(resource: Resource, uri: str, reply: Reply[Any]) -> list[Embedded]:
    """Return the contents for `resources/read`: a str as text, bytes as a blob, data as JSON."""
    if reply.content:
        blocks = [block for block in reply.content if isinstance(block, Embedded)]
        if len(blocks) != len(reply.content):
            raise InvalidOutput("", "a resource returns text, bytes, data or Embedded blocks")
        return blocks
    mime = resource.mime
    match reply.data:
        case str() as text:
            return [Embedded(uri, text=text, mime=mime or "text/plain")]
        case bytes() as blob:
            return [Embedded(uri, blob=blob, mime=mime or "application/octet-stream")]
        case data:
            encoded = reply.encoded or Output(Any).encode(data)[0]
            return [Embedded(uri, text=encoded.decode(), mime=mime or "application/json")]


def content_meta_of(meta: Mapping[str, Any], block: Embedded) -> dict[str, Any]:
    """Return a content's `_meta`: the resource's *meta*, then the block's.

    `resources/read` has no block around the content, so the block's `_meta` counts too.
    """
    return {**meta, **(block.meta or {}), **(block.content_meta or {})}
