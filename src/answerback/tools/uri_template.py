"""Matches URIs against URI templates (RFC 6570) and returns the variables' values.

`{path*}` also matches any path, as it does in FastMCP.
"""

from __future__ import annotations

import re
from math import comb
from urllib.parse import unquote

import msgspec

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(\*)|:([1-9]\d{0,3}))?")
_MAX_LENGTH = 64 * 1024
"""The longest URI that is matched, in characters."""
_MAX_SPLITS = 5_000_000
"""The most ways to split a URI among ambiguous variables that a match may have to try."""


class _Operator(msgspec.Struct, frozen=True):
    prefix: str
    """Stands before the first value."""
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
    """The contents of one group in the pattern: a variable's value, or pairs of several."""

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
        return values if self._have_allowed_length(values) else None

    def _expression_pattern(self, operator: str, inside: str, end: int) -> str:
        """Return an expression's pattern, which ends at *end*, and add its groups."""
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
            raise ValueError(f"{self.text!r} holds {{{part}}}, which names no variable")
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

    def _have_allowed_length(self, values: dict[str, str | list[str]]) -> bool:
        """Return False if a value is longer than its variable allows: `{name:3}` allows three."""
        return all(
            variable.max_length is None or len(values.get(variable.name, "")) <= variable.max_length
            for group in self._groups
            for variable in group.variables
        )


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
    """Return the length up to which URIs are matched, so that no URI takes long to match.

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
