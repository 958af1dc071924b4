"""Loads a generated module, and finds the values that do not fit its types."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress
from types import ModuleType
from typing import Any

import msgspec

from answerback.inference.recorded_replies import RecordedReply
from answerback.reading.typed_data import decoder_for
from answerback.types import nodes
from answerback.types.annotation_reader import read_type
from answerback.types.coerce import coerce
from answerback.types.problems import Coercion, TooManyProblems


def loaded(source: str) -> dict[str, Any]:
    """The table of a generated module: the types by the names of their tools."""
    module = ModuleType("generated_types")
    sys.modules[module.__name__] = module
    exec(compile(source, "generated_types.py", "exec"), vars(module))
    types: dict[str, Any] = module.REPLY_TYPES
    return types


def typed(replies: Iterable[RecordedReply]) -> list[RecordedReply]:
    """The replies that have a type: neither failures nor those with only images."""
    return [each for each in replies if each.data.kind == "data"]


def misfits(replies: Iterable[RecordedReply], types: dict[str, Any]) -> list[str]:
    """What of the replies' data does not fit, with its place."""
    return [
        f"{each.place}: {each.tool}: {problem}"
        for each in typed(replies)
        for problem in _problems(types[each.tool], each.data.value)
    ]


def _problems(annotation: Any, value: Any) -> list[str]:
    node = read_type(annotation, "the type")
    for each in nodes.reachable(node):
        if isinstance(each, nodes.Record):
            # Members that the type does not declare would not be sent.
            each.closed = True
    coercion = Coercion()
    with suppress(TooManyProblems):
        coerce(node, value, "", coercion)
    problems = [str(each) for each in coercion.problems]
    try:
        decoder_for(annotation).decode(b'{"data":%b}' % msgspec.json.encode(value))
    except Exception as exc:  # noqa: BLE001 -- whatever it is, the value does not fit
        problems.append(repr(exc))
    return problems
