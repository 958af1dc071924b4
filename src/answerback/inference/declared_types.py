"""The types in use: which of them say nothing about the data, and which replies do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.json_value import Json
from ..types import nodes
from ..types.annotation_reader import read_type
from ..types.coerce import coerce
from ..types.nodes import Node
from ..types.problems import Coercion, Problem, TooManyProblems
from .reply_data import ReplyData


def says_nothing(annotation: Any) -> bool:
    """Return whether a return type leaves its data open: `Any`, `dict`, `list[dict]`, `str`."""
    return _is_open(read_type(annotation, "the return type"))


def _is_open(node: Node) -> bool:
    match node:
        case nodes.Anything():
            return True
        case nodes.Noted(inner=inner):
            return _is_open(inner)
        case nodes.Scalar(kind=kind):
            # The text may be JSON.
            return kind is str
        case nodes.Mapping(value=value):
            return _holds_open(value)
        case nodes.Array(item=item):
            return _holds_open(item)
        case nodes.Union(members=members):
            # Beside other types, a text is one of them.
            others = [each for each in members if not isinstance(each, nodes.Null)]
            return any(map(_holds_open, others)) or all(map(_is_open, others))
    return False


def _holds_open(node: Node) -> bool:
    """Return whether items or values are open; texts are a type for them."""
    return not isinstance(nodes.without_notes(node), nodes.Scalar) and _is_open(node)


def is_dict(annotation: Any) -> bool:
    """Return whether a return type's values are dicts, so that `{"result": …}` is one."""
    return isinstance(nodes.without_notes(read_type(annotation, "the return type")), nodes.Mapping)


class DeclaredType:
    """A type in use, which finds the values that do not fit it."""

    def __init__(self, annotation: Any) -> None:
        """Raises UnservableType for a type without a JSON form."""
        self._node = read_type(annotation, "the type")
        for each in nodes.reachable(self._node):
            if isinstance(each, nodes.Record):
                # Members that the type does not declare would not be sent.
                each.closed = True

    def problems_of(self, found: ReplyData) -> Sequence[Problem]:
        """Return what of a reply's data does not fit.

        JSON in a text may fit as that text, and data in `{"result": …}` with that object.
        """
        problems = self.problems(found.value)
        if problems and found.is_json_text and not self.problems("a text"):
            return ()
        if problems and found.wrapper is not msgspec.UNSET and not self.problems(found.wrapper):
            return ()
        return [_as_sentence(each) for each in problems]

    def problems(self, value: Json) -> Sequence[Problem]:
        """Return what does not fit, each with its place in the value; at most fifty."""
        coercion = Coercion()
        try:
            coerce(self._node, value, "", coercion)
        except TooManyProblems:
            pass
        except RecursionError:
            return [Problem(path="", message="nested too deep for this type")]
        return coercion.problems


def _as_sentence(problem: Problem) -> Problem:
    if problem.message != "unknown":
        return problem
    return msgspec.structs.replace(problem, message="the type does not have this member")
