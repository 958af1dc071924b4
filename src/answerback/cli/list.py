"""`list`: lists the tools and prompts with their arguments, and the resources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from ..errors import ToolError
from .program import (
    Program,
    add_server_options,
    add_tag_options,
    printable,
    write_json,
    write_note,
    write_stdout,
)
from .tool_help import section, table

if TYPE_CHECKING:
    from ..registry.declarations import ListedKind
    from .program import Target


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("list")
    parser.add_argument("--json", action="store_true", help="names, descriptions and schemas")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resources", action="store_true", help="only the resources")
    group.add_argument("--prompts", action="store_true", help="only the prompts")
    add_tag_options(parser)
    add_server_options(parser, program)
    options = parser.parse_args(arguments)
    kind: ListedKind | None = "resources" if options.resources else None
    if options.prompts:
        kind = "prompts"
    with program.open(program.find_server(options.target), options) as (target, out):
        if options.json:
            write_json(out, msgspec.json.format(target.entries(kind or "tools"), indent=2))
        else:
            for text in _tables(target, kind):
                write_stdout(out, f"{printable(text)}\n".encode())
        target.write_notes()
    return 0


def _tables(target: Target, kind: ListedKind | None) -> Iterator[str]:
    """Yield the tables one by one, because a server may list its tools but fail on the rest."""
    yield table(target, kind or "tools")
    others: tuple[ListedKind, ...] = () if kind else ("resources", "prompts")
    for each in others:
        try:
            rows = target.rows(each, alone=False)
        except ToolError as exc:
            write_note(f"the {each} cannot be listed: {exc}")
            continue
        if rows:
            yield f"\n{section(each, rows)}"
