"""URI templates (RFC 6570), read backwards: which values would have given this URI?"""

from __future__ import annotations

import re
from math import comb
from urllib.parse import unquote

import msgspec

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(\*)|:([1-9]\d{0,3}))?")
_EFFORT = 5_000_000
_LONGEST = 64 * 1024


class _Operator(msgspec.Struct, frozen=True):
    first: str
    """Stands before the first value."""
    between: str
    never: str
    """What no value holds."""


_OPERATORS = {
    "": _Operator("", ",", "/?#,;&="),
    "+": _Operator("", ",", ""),
    "#": _Operator("#", ",", ""),
    ".": _Operator(".", ".", "./?#"),
    "/": _Operator("/", "/", "/?#"),
}
_NAMED = {"?": "&", "&": "&", ";": ";"}
"""Their values come as name=value pairs, in any order, with this between them."""


class _Variable(msgspec.Struct, frozen=True):
    name: str
    is_list: bool
    longest: int | None


class _Group(msgspec.Struct, frozen=True):
    """What one group of the pattern holds: a variable's value, or pairs of several."""

    variables: tuple[_Variable, ...]
    between: str
    is_pairs: bool = False


class Template:
    """Compiled once; raises ValueError for what is not a template."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._groups: list[_Group] = []
        self._marks = "".join(mark for mark in "?;" if "{" + mark in text)
        self._loose = 0
        pattern, end = "", 0
        for expression in _EXPRESSION.finditer(text):
            pattern += re.escape(_literal(text[end : expression.start()], text))
            pattern += self._expression(expression.group(1), expression.group(2), expression.end())
            end = expression.end()
        pattern += re.escape(_literal(text[end:], text))
        self.variables = tuple(each.name for group in self._groups for each in group.variables)
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"{text!r} names a variable twice")
        self._pattern = re.compile(pattern, re.DOTALL)
        self._longest = _longest(self._loose)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The variables' values, percent-decoded, or None if *uri* is not of this form."""
        found = self._pattern.fullmatch(uri) if len(uri) <= self._longest else None
        if found is None:
            return None
        values: dict[str, str | list[str]] = {}
        try:
            for group, text in zip(self._groups, found.groups(), strict=True):
                if text is not None:
                    values |= self._pairs(group, text) if group.is_pairs else _value(group, text)
        except UnicodeDecodeError:
            return None  # No text gives such bytes.
        return values if self._are_short_enough(values) else None

    def _expression(self, operator: str, inside: str, end: int) -> str:
        variables = tuple(self._variable(part) for part in inside.split(","))
        if operator in _NAMED:
            self._groups.append(_Group(variables, _NAMED[operator], is_pairs=True))
            never = "#" if operator != ";" else "/?#"
            after = _next(self.text[end:])
            self._loose += after is not None and (not after or after not in never)
            return f"(?:{re.escape(operator)}([^{never}]*))?"
        rule = _OPERATORS[operator]
        # What has names of its own begins at the first mark, whatever stands before it.
        never = rule.never or self._marks
        nexts = [rule.between] * (len(variables) - 1) + [_next(self.text[end:])]
        parts = []
        for variable, after in zip(variables, nexts, strict=True):
            self._groups.append(_Group((variable,), rule.between))
            one = f"[^{re.escape(never)}]+" if never else ".+"
            listed = variable.is_list and rule.between in never
            parts.append(f"({one}(?:{re.escape(rule.between)}{one})*)" if listed else f"({one})")
            absorbs = not after or after not in never or (listed and after == rule.between)
            self._loose += after is not None and absorbs
        return re.escape(rule.first) + re.escape(rule.between).join(parts)

    def _variable(self, part: str) -> _Variable:
        found = _VARIABLE.fullmatch(part.strip())
        if found is None:
            raise ValueError(f"{self.text!r} holds {{{part}}}, which names no variable")
        name, star, longest = found.groups()
        return _Variable(name, star is not None, int(longest) if longest else None)

    def _pairs(self, group: _Group, text: str) -> dict[str, str | list[str]]:
        # The first of a query's expressions may have taken what belongs to the others too.
        groups = [each for each in self._groups if each.is_pairs and each.between == group.between]
        wanted = {each.name: each for group in groups for each in group.variables}
        values: dict[str, str | list[str]] = {}
        for pair in text.split(group.between):
            name, _, said = pair.partition("=")
            variable = wanted.get(unquote(name))
            if variable is None:
                continue
            value = unquote(said, errors="strict")
            if variable.is_list:
                before = values.get(variable.name, [])
                values[variable.name] = [*before, value]
            else:
                values[variable.name] = value
        return values

    def _are_short_enough(self, values: dict[str, str | list[str]]) -> bool:
        """`{name:3}` gives no more than three characters."""
        return all(
            variable.longest is None or len(values.get(variable.name, "")) <= variable.longest
            for group in self._groups
            for variable in group.variables
        )


def _value(group: _Group, text: str) -> dict[str, str | list[str]]:
    (variable,) = group.variables
    if not variable.is_list:
        return {variable.name: unquote(text, errors="strict")}
    return {variable.name: [unquote(part, errors="strict") for part in text.split(group.between)]}


def _next(rest: str) -> str | None:
    """The character that comes next; an empty string if that can be any, None at the end."""
    if not rest:
        return None
    if rest[0] != "{":
        return rest[0]
    return rest[1:2] if rest[1:2] in (*_NAMED, "/", ".", "#") else ""


def _longest(loose: int) -> int:
    """How long a URI may be, so that nobody can keep us trying where its parts could end.

    *loose* variables are those that could go on past what comes next.
    """
    longest = _LONGEST
    while comb(longest, loose) > _EFFORT and loose > 1:
        longest = longest * 9 // 10
    return longest


def _literal(text: str, whole: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{whole!r} has a brace that is not closed")
    return text
