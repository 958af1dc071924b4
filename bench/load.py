"""An HTTP load generator in one process: keep-alive connections, one request in flight on each.

It supports only the part of HTTP that the measured servers use, so that it costs little CPU time.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from math import inf


def request(port: int, path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


ID = b"4711"
"""Replaced by a number for each connection: two calls in flight must not share an id."""


def calls_per_second(
    port: int, message: bytes, connections: int, seconds: float, calls: float = inf
) -> float:
    """Send *message* for so many seconds or calls; raises if the first response is not a 200."""
    selector = selectors.DefaultSelector()
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    length = _response_length(sockets[0], message)
    by_fd = {sock.fileno(): sock for sock in sockets}
    got = dict.fromkeys(by_fd, 0)
    messages = {fd: message.replace(ID, b"%d" % (1000 + number)) for number, fd in enumerate(by_fd)}
    for sock in sockets:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ)
        sock.sendall(messages[sock.fileno()])
    done, sent = 0, connections
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds and done < calls:
        # Never sleep: waking this process up would cost the server CPU time.
        for key, _ in selector.select(0):
            chunk = by_fd[key.fd].recv(65536)
            if not chunk:
                raise RuntimeError("the server closed a connection")
            got[key.fd] += len(chunk)
            if chunk.endswith(_LAST_CHUNK) if length is None else got[key.fd] >= length:
                done += 1
                got[key.fd] = 0
                if sent < calls:
                    sent += 1
                    by_fd[key.fd].sendall(messages[key.fd])
                else:
                    # The server may close it while others still wait for their responses.
                    selector.unregister(by_fd[key.fd])
    for sock in sockets:
        sock.close()
    return done / (now - start)


_LAST_CHUNK = b"0\r\n\r\n"


def _response_length(sock: socket.socket, message: bytes) -> int | None:
    """The length of a response, which is the same for all; None if the body is chunked."""
    sock.sendall(message)
    response = b""
    while b"\r\n\r\n" not in response:
        response += sock.recv(65536)
    head, _, body = response.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"not a success: {response!r}")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    if b"content-length" not in fields:
        while not body.endswith(_LAST_CHUNK):
            body += sock.recv(65536)
        return None
    while len(body) < int(fields[b"content-length"]):
        body += sock.recv(65536)
    return len(head) + 4 + len(body)


def main() -> None:
    """Read the job from stdin as JSON, and print the calls per second."""
    job = json.load(sys.stdin)
    message = request(job["port"], job["path"], job["body"].encode(), job["headers"])
    seconds, calls = job["seconds"] or inf, job["calls"] or inf
    print(calls_per_second(job["port"], message, job["connections"], seconds, calls))


if __name__ == "__main__":
    main()
