"""Shows the built site on this machine, and builds it again when a page changes."""

from __future__ import annotations

import sys
import threading
import time
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .build import BuildError, build
from .link_check import broken_links
from .source import BESIDE, DOCS, ROOT


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def serve(site: Path, port: int) -> int:
    """Serve *site* on loopback until Ctrl-C."""
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), partial(_Quiet, directory=str(site)))
    except OSError as error:
        print(f"port {port} cannot be used ({error.strerror}); write PORT=8001", file=sys.stderr)
        return 1
    with server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}/ shows the documentation.", flush=True)
        print("A changed page is built again; load it again to see it. Ctrl-C ends it.", flush=True)
        try:
            _rebuild_forever(site)
        except KeyboardInterrupt:
            server.shutdown()
            print()
    return 0


def _rebuild_forever(site: Path) -> None:
    seen = _newest()
    while True:
        time.sleep(0.5)
        if (newest := _newest()) == seen:
            continue
        seen = newest
        try:
            print(f"built {build(site)} pages again", *broken_links(site), sep="\n", flush=True)
        except BuildError as error:
            print(error, file=sys.stderr, flush=True)


def _newest() -> tuple[int, float]:
    """The number of source files, and the time of the last change."""
    files = [*DOCS.rglob("*"), *(ROOT / name for name in BESIDE), ROOT / "mkdocs.yml"]
    return len(files), max(file.stat().st_mtime for file in files)
