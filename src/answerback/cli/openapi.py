"""`openapi`: prints the tools' OpenAPI document."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..registry.declarations import registry_of
from ..server.http.openapi import document_json
from ..server.process import take_stdout
from .program import Program, add_tag_options, write_json


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("openapi")
    text = "list the media types of all dialects that a client can ask for"
    parser.add_argument("--dialects", action="store_true", help=text)
    add_tag_options(parser)
    options = parser.parse_args(arguments)
    out = take_stdout()
    app = program.load_tagged(options.target, options)
    document = document_json(registry_of(app), dialects=options.dialects)
    write_json(out, msgspec.json.format(document, indent=2))
    return 0
