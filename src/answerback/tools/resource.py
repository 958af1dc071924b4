"""Resources: functions whose results clients read, at one URI or at URIs matching a template.

The time a match takes is bounded, and a value from a URI cannot leave its folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from math import comb
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from ..contract import Contract
from ..core.author_errors import did_you_mean, similar_names
from ..core.content import Annotations, Embedded
from ..core.reply import Reply
from ..types.output import Output
from ..types.problems import InvalidOutput
from .tool import Tool, check_free_name
from .tool_options import CommonOptions, read_settings

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo


_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(\*)|:([1-9]\d{0,3}))?")
_MAX_LENGTH = 64 * 1024
"""The longest URI that is matched, in characters."""
_MAX_SPLITS = 5_000_000
"""The maximum number of ways that a match may try to split a URI among ambiguous variables."""


class _Operator(msgspec.Struct, frozen=True):
    prefix: str
    """Precedes the first value."""
    separator: str
    excluded: str
    """The characters that a value cannot contain."""


_OPERATORS = {
    "": _Operator("", ",", "/?#,;&="),
    "+": _Operator("", ",", ""),
    "#": _Operator("#", ",", ""),
    ".": _Operator(".", ".", "./?#"),
    "/": _Operator("/", "/", "/?#"),
}
_NAMED = {"?": "&", "&": "&", ";": ";"}
"""The operators whose values are name=value pairs in any order, with their separators."""


class _Variable(msgspec.Struct, frozen=True):
    name: str
    is_list: bool
    max_length: int | None


class _Group(msgspec.Struct, frozen=True):
    """One group in the pattern; it matches one variable, or the pairs of several variables."""

    variables: tuple[_Variable, ...]
    separator: str
    is_pairs: bool = False


class UriTemplate:
    """A compiled template; raises ValueError if *text* is malformed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._groups: list[_Group] = []
        self._query_marks = "".join(mark for mark in "?;" if "{" + mark in text)
        self._ambiguous = 0
        pattern, end = "", 0
        for expression in _EXPRESSION.finditer(text):
            pattern += re.escape(_literal(text[end : expression.start()], text))
            pattern += self._expression_pattern(
                expression.group(1), expression.group(2), expression.end()
            )
            end = expression.end()
        pattern += re.escape(_literal(text[end:], text))
        self.variables = tuple(each.name for group in self._groups for each in group.variables)
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"{text!r} names a variable twice")
        self._pattern = re.compile(pattern, re.DOTALL)
        self._max_length = _max_length(self._ambiguous)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """Return the variables' values, percent-decoded, or None if *uri* does not match."""
        found = self._pattern.fullmatch(uri) if len(uri) <= self._max_length else None
        if found is None:
            return None
        values: dict[str, str | list[str]] = {}
        try:
            for group, text in zip(self._groups, found.groups(), strict=True):
                if text is not None:
                    read = self._pair_values if group.is_pairs else _group_value
                    values |= read(group, text)
        except UnicodeDecodeError:
            return None  # The percent-encoded bytes are not UTF-8.
        for variable in (each for group in self._groups for each in group.variables):
            # `{name:3}` allows at most three characters.
            longest = variable.max_length
            if longest is not None and len(values.get(variable.name, "")) > longest:
                return None
        return values

    def _expression_pattern(self, operator: str, inside: str, end: int) -> str:
        """Return the pattern for an expression that ends at *end*, and add its groups."""
        variables = tuple(self._parse_variable(part) for part in inside.split(","))
        if operator in _NAMED:
            self._groups.append(_Group(variables, _NAMED[operator], is_pairs=True))
            excluded = "#" if operator != ";" else "/?#"
            after = _next_character(self.text[end:])
            self._ambiguous += after is not None and (not after or after not in excluded)
            return f"(?:{re.escape(operator)}([^{excluded}]*))?"
        rule = _OPERATORS[operator]
        following = [rule.separator] * (len(variables) - 1) + [_next_character(self.text[end:])]
        parts = []
        for variable, after in zip(variables, following, strict=True):
            self._groups.append(_Group((variable,), rule.separator))
            is_path = variable.is_list and operator == ""
            # Pairs begin at the first ? or ;, so a value before them cannot contain that mark.
            excluded = ("" if is_path else rule.excluded) or self._query_marks
            one = f"[^{re.escape(excluded)}]+" if excluded else ".+"
            listed = variable.is_list and rule.separator in excluded
            parts.append(f"({one}(?:{re.escape(rule.separator)}{one})*)" if listed else f"({one})")
            can_continue = (
                not after or after not in excluded or (listed and after == rule.separator)
            )
            self._ambiguous += after is not None and can_continue
        return re.escape(rule.prefix) + re.escape(rule.separator).join(parts)

    def _parse_variable(self, part: str) -> _Variable:
        found = _VARIABLE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{self.text!r} contains {{{part}}}, which is not a variable name")
        name, star, length = found.groups()
        return _Variable(name, star is not None, int(length) if length else None)

    def _pair_values(self, group: _Group, text: str) -> dict[str, str | list[str]]:
        # The first of a query's expressions also matches the pairs of the later ones.
        groups = [
            each for each in self._groups if each.is_pairs and each.separator == group.separator
        ]
        wanted = {each.name: each for group in groups for each in group.variables}
        values: dict[str, str | list[str]] = {}
        for pair in text.split(group.separator):
            name, _, encoded = pair.partition("=")
            variable = wanted.get(unquote(name))
            if variable is None:
                continue
            value = unquote(encoded, errors="strict")
            if variable.is_list:
                earlier = values.get(variable.name, [])
                values[variable.name] = [*earlier, value]
            else:
                values[variable.name] = value
        return values


def _group_value(group: _Group, text: str) -> dict[str, str | list[str]]:
    (variable,) = group.variables
    if not variable.is_list:
        return {variable.name: unquote(text, errors="strict")}
    return {variable.name: [unquote(part, errors="strict") for part in text.split(group.separator)]}


def _next_character(rest: str) -> str | None:
    """Return the character that begins *rest*; "" if it can be any character, None at the end."""
    if not rest:
        return None
    if rest[0] != "{":
        return rest[0]
    return rest[1:2] if rest[1:2] in (*_NAMED, "/", ".", "#") else ""


def _max_length(ambiguous: int) -> int:
    """Return the maximum length of a URI, so that no URI takes a long time to match.

    *ambiguous* is the number of variables whose values may contain the character that
    follows them: the pattern tries every way to split the URI among them.
    """
    length = _MAX_LENGTH
    while comb(length, ambiguous) > _MAX_SPLITS and ambiguous > 1:
        length = length * 9 // 10
    return length


def _literal(text: str, whole: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{whole!r} has a brace that is not closed")
    return text


_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S*\Z")


class ResourceOptions(CommonOptions, total=False):
    """Options for `@app.resource`."""

    mime: str
    """The media type of the contents."""
    size: int
    """The contents' size in bytes, if it is known."""
    annotations: Annotations
    """Audience, priority and last-modified date, for hosts."""
    content_meta: Mapping[str, Any]
    """The `_meta` of the contents in `resources/read`, where hosts look for widget metadata."""
    allow_paths: Sequence[str]
    """Parameters that accept any path; others reject paths that leave a folder, such as `../x`."""


class Resource(Tool):
    """A function that returns a URI's contents: text, bytes, or data to send as JSON."""

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
        super().__init__(fn, read_settings({"returns": "value", **options}), contract)
        known = [parameter.name for parameter in self.signature.parameters]
        parameters = set(known)
        variables = set(self.template.variables) if self.template else set()
        if parameters != variables:
            missing = ", ".join(f"{name}: str" for name in sorted(variables - parameters))
            extra = ", ".join(f"{{{name}}}" for name in sorted(parameters - variables))
            steps = [f"add {missing} to the function's parameters"] if missing else []
            steps += [f"add {extra} to the URI, or remove the parameter"] if extra else []
            raise TypeError(
                f"resource {self.uri!r} has the variables {sorted(variables)}, "
                f"and its function has the parameters {sorted(parameters)}; {'; '.join(steps)}"
            )
        self._any_path = frozenset(options.get("allow_paths") or ())
        for name in self._any_path.difference(known):
            names = ", ".join(map(repr, known)) or "none"
            hint = did_you_mean(similar_names(name, known)) or f"known parameters: {names}"
            raise ValueError(f"allow_paths: no parameter is named {name!r}; {hint}")

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
        # Check the strings before and after conversion: types may split, decode or encode a string.
        if any(
            _leaves_its_folder(values[name]) or _leaves_its_folder(arguments[name])
            for name in values.keys() - self._any_path
        ):
            return None
        return msgspec.json.encode(arguments)

    def meta_of_content(self, endpoint: str, request: RequestInfo | None) -> Mapping[str, Any]:
        """Return each content's `_meta`; a widget's depends on the endpoint's URL."""
        return self.content_meta or {}


def _leaves_its_folder(value: object) -> bool:
    """Return whether *value*, or a string in a list or object, is a path that leaves its folder.

    Such paths have more `..` than folders before them, are absolute, or have a drive letter or NUL.
    Both `/` and the backslash are separators, because Windows accepts both.
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

    `resources/read` has no block around the content, so the block's `_meta` is used too.
    """
    return {**meta, **(block.meta or {}), **(block.content_meta or {})}
