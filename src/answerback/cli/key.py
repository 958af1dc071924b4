"""`key`: generates an API key, and prints the digest that the server stores."""

from __future__ import annotations

from collections.abc import Sequence

from ..auth.api_keys import ApiKeys
from .program import Program, print_line

_EPILOG = """\
Give the key to the program; it is shown only once. The server needs only the digest:
auth=ApiKeys({"DIGEST": "NAME"})."""


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("key", "[--name NAME]", epilog=_EPILOG)
    parser.add_argument("--name", default="ci", help="the program that the key is for")
    options = parser.parse_args(arguments)
    made = ApiKeys.new()
    lines = (
        f"key     {made.key}",
        f"digest  {made.digest}",
        "",
        "Give the key to the program; it is not shown again. In the server, write:",
        f'  auth=ApiKeys({{"{made.digest}": "{options.name}"}})',
    )
    print_line("\n".join(lines))
    return 0
