"""The ports that the tests give to other programs."""

import socket
import sys
from pathlib import Path

from tests.ports import listening


def test_a_program_that_says_that_its_port_is_taken_gets_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = [other.getsockname()[1]]

        def command(port: int) -> list[str]:
            ports.append(port)
            first = ports[0] if len(ports) == 2 else port
            return [sys.executable, "-m", "http.server", "-b", "127.0.0.1", str(first)]

        with listening(command, tmp_path / "log", cwd=tmp_path) as server:
            assert server.port == ports[2]
