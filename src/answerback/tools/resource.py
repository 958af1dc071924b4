"""Resources: what can be read, at one URI or at all URIs of a template."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from ..content import Annotations, Embedded
from ..contract import Contract
from ..reply import Reply
from ..types.output import Output
from ..types.problems import InvalidOutput
from .tool import Options, Tool
from .uri_template import Template

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*\Z")


class ResourceOptions(Options, total=False):
    """What an author may say about a resource beside its function."""

    mime: str
    size: int
    annotations: Annotations


class Resource(Tool):
    """A function that gives what is at a URI: text, bytes, or anything JSON can say."""

    def __init__(
        self, uri: str, fn: Callable[..., Any], options: ResourceOptions, contract: Contract
    ) -> None:
        self.uri = uri
        self.template = Template(uri) if "{" in uri else None
        self.mime = options.get("mime")
        self.size = options.get("size")
        self.annotations = options.get("annotations")
        super().__init__(fn, {"lenient": True, **options}, contract)
        self._check_variables()

    def arguments_for(self, uri: str) -> bytes | None:
        """The function's arguments for *uri*, or None if it is not this resource's."""
        if self.template is None:
            return b"{}" if uri == self.uri else None
        values = self.template.match(uri)
        if values is None:
            return None
        pairs = [
            (name, value if isinstance(value, str) else ",".join(value))
            for name, value in values.items()
        ]
        return msgspec.json.encode(self.from_strings(pairs))

    def _check_variables(self) -> None:
        wanted = {parameter.name for parameter in self.signature.parameters}
        given = set(self.template.variables) if self.template else set()
        if wanted != given:
            raise TypeError(
                f"resource {self.uri!r} has the variables {sorted(given)}, "
                f"and its function the parameters {sorted(wanted)}; they must be the same"
            )


def check_uri(uri: Any) -> None:
    """Refuse what clients could not ask for."""
    if callable(uri):
        raise TypeError("@app.resource takes a URI: @app.resource('config://app')")
    if not isinstance(uri, str) or not _SCHEME.match(uri):
        raise ValueError(f"{uri!r} is no URI; write one with a scheme, such as 'config://app'")


def contents_of(resource: Resource, uri: str, reply: Reply[Any]) -> list[Embedded]:
    """What was read, as bodies: text is text, bytes are a blob, all else is JSON."""
    if reply.content:
        bodies = [block for block in reply.content if isinstance(block, Embedded)]
        if len(bodies) != len(reply.content):
            raise InvalidOutput("", "a resource gives text, bytes, data or Embedded blocks")
        return bodies
    mime = resource.mime
    match reply.data:
        case str() as text:
            return [Embedded(uri, text=text, mime=mime or "text/plain")]
        case bytes() as blob:
            return [Embedded(uri, blob=blob, mime=mime or "application/octet-stream")]
        case data:
            encoded = reply.encoded or Output(Any).encode(data)[0]
            return [Embedded(uri, text=encoded.decode(), mime=mime or "application/json")]
