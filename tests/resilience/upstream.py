"""A small HTTP server that misbehaves as its path says; a process of its own.

Each request is appended to the file that is its argument, so that the count outlives the process.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(ThreadingHTTPServer):
    request_queue_size = 128
    """Without it, the system resets connections while more than five wait to be accepted."""


class Handler(BaseHTTPRequestHandler):
    log = Path(sys.argv[1] if len(sys.argv) > 1 else os.devnull)

    def do_POST(self) -> None:
        with self.log.open("a") as file:
            file.write(f"{self.path}\n")
        count = self.log.read_text().split().count(self.path)
        mode = self.path.strip("/").partition("-")[0]
        getattr(self, mode)(count)

    def fails(self, count: int) -> None:
        """Two failures, then an answer."""
        self.answer(200 if count > 2 else 503)

    def always(self, count: int) -> None:
        """Nothing but failures."""
        self.answer(500)

    def hangs(self, count: int) -> None:
        """No answer, for longer than any test waits."""
        time.sleep(600)

    def slow(self, count: int) -> None:
        time.sleep(0.2)
        self.answer(200)

    def dies(self, count: int) -> None:
        """The process ends in the middle of the first call."""
        if count == 1:
            os._exit(1)
        self.answer(200)

    def half(self, count: int) -> None:
        """The first answer is shorter than announced."""
        self.answer(200, missing=100 if count == 1 else 0)

    def flaky(self, count: int) -> None:
        """One failure, then an answer."""
        self.answer(200 if count > 1 else 503)

    def later(self, count: int) -> None:
        """The first request is refused until a date, which is over."""
        if count > 1:
            return self.answer(200)
        self.send_response(429)
        self.send_header("Retry-After", formatdate(time.time() - 5, usegmt=True))
        self.send_header("Content-Length", "0")
        self.end_headers()
        return None

    def shuts(self, count: int) -> None:
        """The first connection is closed without an answer, in the direction to the client."""
        if count == 1:
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True
        else:
            self.answer(200)

    def drips(self, count: int) -> None:
        """One byte of the answer every 20 milliseconds, without an end."""
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b" ")
            time.sleep(0.02)

    def floods(self, count: int) -> None:
        """An answer without an end."""
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(b"x" * 10_000)
            time.sleep(0.001)

    def answer(self, status: int, missing: int = 0) -> None:
        body = b'{"ok": true}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) + missing))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
    server.daemon_threads = True
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
