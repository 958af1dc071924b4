"""A model's HTTP API that gives scripted answers, for the tests of the agents in `examples/`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any


def _always(path: str, headers: Message) -> bool:
    return True


@contextmanager
def scripted_model(
    answers: Sequence[Any], is_known: Callable[[str, Message], bool] = _always
) -> Iterator[tuple[str, list[Any]]]:
    """Serve *answers* in turn; yields the URL and the requests that it gets.

    A request that *is_known* does not accept gets the status 404.
    """
    requests: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(answers[len(requests) - 1]).encode()
            self.send_response(200 if is_known(self.path, self.headers) else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Write no line for each request."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
