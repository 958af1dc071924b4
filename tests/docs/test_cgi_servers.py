"""Runs the configuration of docs/cgi.md under lighttpd, if it is installed."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
LIGHTTPD = shutil.which("lighttpd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/opt/homebrew/bin")


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[str]:
    """The URL at which lighttpd serves the calculator, with the page's configuration."""
    if LIGHTTPD is None:
        pytest.skip("lighttpd is not installed")
    program = tmp_path / "calculator.py"
    source = (ROOT / "examples" / "calculator.py").read_text()
    program.write_text(f"#!{sys.executable}\n{source}")
    program.chmod(0o755)
    (tmp_path / "public").mkdir()
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    page = (ROOT / "docs" / "cgi.md").read_text()
    found = re.search(r"```lighttpd\n(.*?)```", page, re.DOTALL)
    assert found is not None
    configuration = found[1].replace("/srv/tools", str(tmp_path)).replace("8080", str(port))
    (tmp_path / "lighttpd.conf").write_text(configuration)
    command = [LIGHTTPD, "-D", "-f", str(tmp_path / "lighttpd.conf")]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            assert "server started" in server.stderr.readline()
            yield f"http://127.0.0.1:{port}/tools"
        finally:
            server.terminate()


def test_lighttpd_serves_the_program_with_the_pages_configuration(tools: str) -> None:
    for path in ("add", "functions/add"):
        request = urllib.request.Request(f"{tools}/{path}", b'{"x": 7, "y": 3}')
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as response:
            assert response.read() == b'{"result":10}'
            assert response.headers["Content-Type"] == "application/json"


def test_lighttpd_passes_error_responses_and_the_health_check_on(tools: str) -> None:
    with urllib.request.urlopen(f"{tools}/healthz", timeout=10) as response:
        assert response.read() == b'{"status":"ok","name":"calculator","version":"1.0.0"}'
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{tools}/functions/add", b"x=7", timeout=10)
    with refused.value as answer:
        assert answer.status == 415
        assert answer.headers["X-Error-Code"] == "UNSUPPORTED_MEDIA_TYPE"
