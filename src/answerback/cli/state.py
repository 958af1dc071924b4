"""`state`: makes, checks and updates the tables that several hosts share."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from ..core.signing import secrets_from_environment
from ..state.settings import STATE, WrongState, check_url
from ..types.describe import counted
from .argument_parser import subcommand_parsers
from .program import Program, print_line


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _parser(program).parse_args(arguments)
    url = options.url or os.environ.get(STATE)
    if not url:
        raise WrongState(f"give the URL of the database, or set {STATE}")
    check_url(url)
    return _SUBCOMMANDS[options.subcommand][1](url, options)


def _parser(program: Program) -> ArgumentParser:
    parser, subparsers = subcommand_parsers(program, "state", _SUBCOMMANDS)
    for name, each in subparsers.items():
        text = f"the database, as postgresql://user@host/name (default: {STATE})"
        each.add_argument("url", nargs="?", metavar="URL", help=text)
        if name == "check":
            text = "how many processes of servers and workers there will be (default: 1)"
            each.add_argument("--processes", type=int, default=1, metavar="N", help=text)
    return parser


def _migrate(url: str, options: Namespace) -> int:
    from ..state.migrations import migrate
    from ..state.shared import connected

    with connected(url) as connection:
        before, after = migrate(connection)
    if before == after:
        print_line(f"the tables have version {after} already")
    else:
        print_line(f"the tables have version {after} now" + (f", {before} before" * bool(before)))
    return 0


def _check(url: str, options: Namespace) -> int:
    from ..state.maintenance import check_state

    report = check_state(url, secrets_from_environment(), processes=options.processes)
    for line in report.lines:
        print_line(line)
    return 1 if report.problems else 0


def _rekey(url: str, options: Namespace) -> int:
    from ..state.maintenance import rekey

    secrets = secrets_from_environment()
    if not secrets:
        raise WrongState("rekey needs ANSWERBACK_SECRET=new,old: the first secret seals anew")
    count = rekey(url, secrets)
    print_line(f"{counted(count, 'record')} sealed anew")
    return 0


_SUBCOMMANDS = {
    "init": ("make the tables in an empty database", _migrate),
    "check": ("say whether servers can use the database, and which secrets its rows need", _check),
    "upgrade": ("bring the tables up to the version of this program", _migrate),
    "rekey": ("seal all records with the first secret of ANSWERBACK_SECRET", _rekey),
}
