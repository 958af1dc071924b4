"""Serves an ASGI application with uvicorn, configured as in `serve`, and prints the port."""

from __future__ import annotations

import socket
import sys

import uvicorn


def main(application: str, protocol: str) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(
        application, http=protocol, log_level="warning", access_log=False, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
