"""`schema`: prints a reply's JSON Schema in a dialect."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..dialects.reply_schemas import convention_schema, dialect_schema
from .program import Program, print_line

_EPILOG = """\
--convention prints, word for word, the schema in the document that defines the envelope;
docs/reference/conventions.md lists where the two differ, and why."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("schema", "DIALECT [--convention]", epilog=_EPILOG)
    dialects = ("mcp", "rest", "envelope", "problem")
    parser.add_argument("dialect", choices=dialects, help="the form of the reply")
    parser.add_argument("--convention", action="store_true", help="the envelope's original schema")
    if "--seed" in arguments:
        parser.error("--seed is now --convention: write schema envelope --convention")
    options = parser.parse_args(arguments)
    if options.convention and options.dialect != "envelope":
        parser.error("--convention only works with envelope")
    schema = convention_schema() if options.convention else dialect_schema(options.dialect)
    print_line(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())
    return 0
