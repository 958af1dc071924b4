"""`serve`: the tools over HTTP."""

from __future__ import annotations

from collections.abc import Sequence

from ..wires.http import MAX_BODY
from ..wires.web.options import ServeOptions, WebOptions
from .program import Program


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("serve")
    parser.add_argument("--host", default="127.0.0.1", help="the address (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8000, help="the port (default: %(default)s)")
    parser.add_argument("--workers", type=_positive, default=1, help="processes (default: 1)")
    parser.add_argument(
        "--max-body", type=_positive, default=MAX_BODY, help="bytes of a request (default: 4 MiB)"
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="a name to answer to"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="URL", help="a site that may call"
    )
    given = parser.parse_args(arguments)
    web = WebOptions(
        max_body=given.max_body, hosts=(*given.allow_host,), origins=(*given.allow_origin,)
    )
    options = ServeOptions(host=given.host, port=given.port, workers=given.workers, web=web)
    app = program.load(given.target)
    from ..wires.web.server import serve

    return serve(app, options)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
