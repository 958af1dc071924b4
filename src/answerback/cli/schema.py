"""`schema`: prints the JSON Schema of a reply in a dialect."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .program import Program, print_text

_EPILOG = """\
--seed prints the schema of the document that the envelope comes from, word for word;
docs/reference/conventions.md lists where the two differ, and why."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("schema", "DIALECT [--seed]", epilog=_EPILOG)
    parser.add_argument("dialect", choices=("mcp", "rest", "envelope", "problem"))
    parser.add_argument("--seed", action="store_true", help="the envelope's original schema")
    options = parser.parse_args(arguments)
    if options.seed and options.dialect != "envelope":
        parser.error("--seed goes with envelope only")
    from ..dialects.reply_schemas import dialect_schema, seed_schema

    schema = seed_schema() if options.seed else dialect_schema(options.dialect)
    print_text(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n")
    return 0
