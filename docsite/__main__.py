"""`python -m docsite` builds `site/` and checks its links; `python -m docsite serve` shows it."""

from __future__ import annotations

import argparse
import sys

from .build import SITE, BuildError, build
from .link_check import broken_links
from .serve import serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docsite", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["build", "serve"], default="build")
    parser.add_argument("--port", type=int, default=8000, help="the port of `serve` (8000)")
    options = parser.parse_args()

    try:
        pages = build(SITE)
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    broken = broken_links(SITE)
    for each in broken:
        print(each, file=sys.stderr)
    if broken:
        print(f"broken links: {len(broken)}", file=sys.stderr)
    if options.command == "serve":
        return serve(SITE, options.port)
    print(f"site/index.html is the first of {pages} pages")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
