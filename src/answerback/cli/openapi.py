"""`openapi`: prints the OpenAPI document of the tools."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..wires.standard_streams import take_stdout
from .program import Program, write_json


def run(program: Program, arguments: Sequence[str]) -> int:
    target = program.parser_with_target("openapi", usage="").parse_args(arguments).target
    out = take_stdout()
    app = program.load(target)
    from ..wires.http.openapi import document_json

    write_json(out, msgspec.json.format(document_json(app), indent=2))
    return 0
