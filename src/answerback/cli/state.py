"""`state`: creates, checks and updates the tables that several hosts share."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..core.signing import SECRET, secrets_from_environment
from ..server.shared_state import STATE, WrongState, check_url
from ..types.problems import counted
from .argument_parser import subcommand_parsers
from .program import Program, print_line


def run(program: Program, arguments: Sequence[str]) -> int:
    parser, subparsers = subcommand_parsers(program, "state", _SUBCOMMANDS)
    for each in subparsers.values():
        text = f"the database, as postgresql://user@host/name (default: {STATE})"
        each.add_argument("url", nargs="?", metavar="URL", help=text)
    text = "how many server and worker processes there will be (default: 1)"
    subparsers["check"].add_argument("--processes", type=int, default=1, metavar="N", help=text)
    options = parser.parse_args(arguments)
    url = options.url or os.environ.get(STATE)
    if not url:
        raise WrongState(f"pass the database URL, or set {STATE}")
    check_url(url)
    # Imported here because it needs psycopg, which `state --help` does not.
    from ..state import maintenance

    secrets = secrets_from_environment()
    match options.subcommand:
        case "check":
            report = maintenance.check_state(url, secrets, processes=options.processes)
            print_line("\n".join(report.lines))
            return 1 if report.problems else 0
        case "rekey":
            if not secrets:
                raise WrongState(f"rekey needs {SECRET}=new,old: it encrypts with the first one")
            print_line(f"re-encrypted {counted(maintenance.rekey(url, secrets), 'record')}")
        case _:
            print_line(maintenance.update_tables(url, secrets))
    return 0


_SUBCOMMANDS = {
    "init": ("create the tables in an empty database, and bind them to the secret", None),
    "check": ("show whether servers can use the database, and which secrets its rows need", None),
    "upgrade": ("upgrade the tables to this program's version", None),
    "rekey": (f"re-encrypt all records with the first secret in {SECRET}", None),
}
