"""A bounded HTTP load from one process: keep-alive connections, one request in flight on each.

Only as much of HTTP as the servers measured here speak, so that it is not what is measured.
"""

from __future__ import annotations

import selectors
import socket
import sys
import time


def request(path: str, body: bytes, headers: dict[str, str] | None = None) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    lines += [f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def calls_per_second(port: int, message: bytes, connections: int, seconds: float) -> float:
    """Send *message* over and over; raises if an answer is not a 200."""
    selector = selectors.DefaultSelector()
    pending: dict[int, int] = {}
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    length = _answer_length(sockets[0], message)
    for sock in sockets:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(sock, selectors.EVENT_READ)
        pending[sock.fileno()] = length
        sock.sendall(message)
    sockets_by_fd = {sock.fileno(): sock for sock in sockets}
    done = 0
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds:
        for key, _ in selector.select(1):
            ready = sockets_by_fd[key.fd]
            chunk = ready.recv(65536)
            if not chunk:
                raise RuntimeError("the server closed a connection")
            left = pending[key.fd] - len(chunk)
            if left <= 0:
                done += 1
                left = length
                ready.sendall(message)
            pending[key.fd] = left
    for sock in sockets:
        sock.close()
    return done / (now - start)


def _answer_length(sock: socket.socket, message: bytes) -> int:
    """The length of one whole answer; the server's must all be of that length."""
    sock.sendall(message)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += sock.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0]:
        raise RuntimeError(f"not a success: {answer!r}")
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    while len(body) < int(fields[b"content-length"]):
        body += sock.recv(65536)
    return len(head) + 4 + len(body)


if __name__ == "__main__":
    port, path, body, connections, seconds = sys.argv[1:]
    rate = calls_per_second(
        int(port), request(path, body.encode()), int(connections), float(seconds)
    )
    print(rate)
