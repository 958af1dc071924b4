"""URI templates (RFC 6570), read backwards: which values would have given this URI?"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

import msgspec

_EXPRESSION = re.compile(r"\{([+#./;?&]?)([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\*|:\d+)?")


class _Operator(msgspec.Struct, frozen=True):
    first: str
    """Stands before the first value."""
    between: str
    value: str
    """A pattern for one value."""


_SIMPLE = r"[^/?#,;&=]+"
_OPERATORS = {
    "": _Operator("", ",", _SIMPLE),
    "+": _Operator("", ",", r".+"),
    "#": _Operator("#", ",", r".+"),
    ".": _Operator(".", ".", r"[^./?#]+"),
    "/": _Operator("/", "/", r"[^/?#]+"),
}
_NAMED = {"?": r"\?", "&": "&", ";": ";"}
"""Their values come as name=value pairs, in any order."""


class Template:
    """Compiled once; raises ValueError for what is not a template."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: tuple[str, ...] = ()
        self._pairs: dict[str, tuple[str, ...]] = {}
        self._lists: set[str] = set()
        pattern, end = "", 0
        for expression in _EXPRESSION.finditer(text):
            pattern += re.escape(_literal(text[end : expression.start()], text))
            pattern += self._expression(expression.group(1), expression.group(2))
            end = expression.end()
        pattern += re.escape(_literal(text[end:], text))
        if len(set(self.variables)) != len(self.variables):
            raise ValueError(f"{text!r} names a variable twice")
        self._pattern = re.compile(pattern, re.DOTALL)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """The variables' values, percent-decoded, or None if *uri* is not of this form."""
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        values: dict[str, str | list[str]] = {}
        for name, value in found.groupdict().items():
            if value is None:
                continue
            if name in self._pairs:
                values |= _pairs(value, self._pairs[name])
            elif name in self._lists:
                values[name] = [unquote(part) for part in re.split(r"[,./]", value) if part]
            else:
                values[name] = unquote(value)
        return values

    def _expression(self, operator: str, inside: str) -> str:
        names = [self._variable(part) for part in inside.split(",")]
        if operator in _NAMED:
            group = f"_pairs{len(self._pairs)}"
            self._pairs[group] = tuple(names)
            rest = r"[^#]*" if operator != ";" else r"[^/?#]*"
            return f"(?:{_NAMED[operator]}(?P<{group}>{rest}))?"
        rule = _OPERATORS[operator]
        parts = [self._value(name, rule) for name in names]
        return re.escape(rule.first) + re.escape(rule.between).join(parts)

    def _variable(self, part: str) -> str:
        variable = _VARIABLE.fullmatch(part.strip())
        if variable is None:
            raise ValueError(f"{self.text!r} holds {{{part}}}, which names no variable")
        name, modifier = variable.groups()
        if modifier == "*":
            self._lists.add(name)
        self.variables += (name,)
        return name

    def _value(self, name: str, rule: _Operator) -> str:
        if name in self._lists:
            many = re.escape(rule.between)
            return f"(?P<{name}>{rule.value}(?:{many}{rule.value})*)"
        return f"(?P<{name}>{rule.value})"


def _pairs(text: str, names: tuple[str, ...]) -> dict[str, str | list[str]]:
    pairs = parse_qsl(text.replace(";", "&"), keep_blank_values=True)
    return {name: value for name, value in pairs if name in names}


def _literal(text: str, whole: str) -> str:
    if "{" in text or "}" in text:
        raise ValueError(f"{whole!r} has a brace that is not closed")
    return text
