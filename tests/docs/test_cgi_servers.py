"""Runs the configurations of docs/guides/cgi.md under the web servers that are installed."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.ports import listening
from tests.server.processes import wait_until
from tests.serving import FIRST_LINES

import answerback

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = "/usr/sbin:/usr/local/sbin:/usr/bin:/opt/homebrew/bin"
APACHE_MODULES = Path("/usr/lib/apache2/modules")
NGINX_PARAMETERS = Path("/etc/nginx/fastcgi_params")
BODY_LIMIT = 1048576
"""The limit that the configurations of the page set."""


class Response(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Site:
    """A folder with the program, and the port of the web server that serves it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0

    def configuration(self, language: str, port: int) -> str:
        """The page's configuration for this folder and a port."""
        page = (ROOT / "docs" / "guides" / "cgi.md").read_text()
        found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
        assert found is not None
        return found[1].replace("/srv/tools", str(self.folder)).replace("8080", str(port))

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return str(self.folder / name)

    def request(
        self, method: str, path: str, body: bytes | Iterator[bytes] = b"", media: str = ""
    ) -> Response:
        """Send a request and read the whole response; raises if it is incomplete."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            headers = {"Content-Type": media} if media else {}
            connection.request(method, f"/tools/{path}", body, headers)
            response = connection.getresponse()
            return Response(response.status, response.headers, response.read())


Command = Callable[[int], list[str]]
"""Gives the words that serve on a port."""


def lighttpd(site: Site, _: ExitStack) -> Command:
    program = find("lighttpd")

    def command(port: int) -> list[str]:
        # lighttpd stores large bodies in /var/tmp, which some containers lack.
        uploads = f'server.upload-dirs = ("{site.folder}")\n'
        file = site.write("lighttpd.conf", site.configuration("lighttpd", port) + uploads)
        return [program, "-D", "-f", file]

    return command


def apache(site: Site, _: ExitStack) -> Command:
    """Apache with the event module and mod_cgid."""
    program = find("apache2")
    names = ("mpm_event", "authz_core", "alias", "env", "cgid")
    modules = [f"LoadModule {name}_module {APACHE_MODULES}/mod_{name}.so" for name in names]
    folder = site.folder

    def command(port: int) -> list[str]:
        lines = [
            *modules,
            "ServerName 127.0.0.1",
            f"ServerRoot {folder}",
            f"Listen 127.0.0.1:{port}",
            f"PidFile {folder}/apache.pid",
            f"ErrorLog {folder}/apache.log",
            f"ScriptSock {folder}/cgid.sock",
            f"Mutex file:{folder} default",
            site.configuration("apache", port),
        ]
        return [program, "-D", "FOREGROUND", "-f", site.write("apache.conf", "\n".join(lines))]

    return command


def nginx(site: Site, stack: ExitStack) -> Command:
    """nginx with fcgiwrap."""
    program, wrapper = find("nginx"), find("fcgiwrap")
    if not NGINX_PARAMETERS.exists():
        pytest.skip(f"nginx's {NGINX_PARAMETERS} is not installed")
    folder = site.folder
    gateway = folder / "fcgiwrap.socket"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)

    def command(port: int) -> list[str]:
        page = site.configuration("nginx", port).replace("/run/fcgiwrap.socket", str(gateway))
        page = page.replace("fastcgi_params", str(NGINX_PARAMETERS))
        file = site.write(
            "nginx.conf",
            f"pid {folder}/nginx.pid; error_log {folder}/nginx.log; daemon off; events {{}}"
            f"http {{ access_log off; {temporary}"
            f"server {{ listen 127.0.0.1:{port};\n{page}\n}} }}",
        )
        return [program, "-e", f"{folder}/nginx.log", "-c", file]

    wrap = [*without_root(), wrapper, "-s", f"unix:{gateway}"]
    process = stack.enter_context(subprocess.Popen(wrap, stderr=subprocess.DEVNULL))
    stack.callback(process.terminate)
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        wait_until(lambda: connection.connect_ex(str(gateway)) == 0)
    return command


SERVERS: dict[str, Callable[[Site, ExitStack], Command]] = {
    "lighttpd": lighttpd,
    "apache": apache,
    "nginx": nginx,
}


@pytest.fixture(params=SERVERS)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """The calculator, served with the page's configuration."""
    # The paths of unix sockets are limited to about 100 characters, which tmp_path may exceed.
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/tmp")))
        # The package under test, which need not be the one that is installed.
        package = Path(answerback.__file__).parent.parent
        path = f"import sys; sys.path.insert(0, {str(package)!r})"
        source = (ROOT / "examples" / "calculator.py").read_text()
        (folder / "calculator.py").write_text(f"{FIRST_LINES}{path}\n{source}")
        (folder / "calculator.py").chmod(0o755)
        (folder / "public").mkdir()
        served = Site(folder)
        command = SERVERS[request.param](served, stack)
        served.port = stack.enter_context(running(command, folder))
        yield served


def find(name: str) -> str:
    found = shutil.which(name, path=PROGRAMS)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def without_root() -> list[str]:
    """The words before a command that take root's name from it: Apache refuses to serve as root."""
    if os.geteuid() != 0:
        return []
    words = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
    try:
        subprocess.run([*words, "true"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("root cannot become another user here")
    return words


@contextmanager
def running(command: Command, folder: Path) -> Iterator[int]:
    """Run a web server whose output goes to *folder*, and give its port."""
    words = without_root()
    with listening(lambda port: [*words, *command(port)], folder / "output") as server:
        yield server.port


def test_a_web_server_serves_the_program_with_the_pages_configuration(site: Site) -> None:
    for path in ("add", "functions/add"):
        response = site.request("POST", path, b'{"x": 7, "y": 3}', "application/json")

        assert (response.status, response.body) == (200, b'{"result":10}')
        assert response.headers["Content-Type"] == "application/json"


def test_a_web_server_passes_the_health_check_on(site: Site) -> None:
    response = site.request("GET", "healthz")

    assert response.body == b'{"status":"ok","name":"calculator","version":"1.0.0"}'


@pytest.mark.parametrize("size", [20, 700_000])
def test_a_web_server_passes_each_refusal_on_completely(site: Site, size: int) -> None:
    """Contract: the body of a request is read, even if the request is refused."""
    body = b'{"x": 1, "y": '.ljust(size)
    json = "application/json"

    malformed = site.request("POST", "add", body, json)
    missing = site.request("POST", "nothing", body, json)
    wrong_method = site.request("PUT", "add", body, json)
    page = site.request("POST", "healthz", body, json)
    form = site.request("POST", "add", body, "application/x-www-form-urlencoded")

    assert (malformed.status, malformed.body) == (400, b'{"error":"Invalid JSON body"}')
    assert (missing.status, missing.headers["X-Error-Code"]) == (404, "TOOL_NOT_FOUND")
    assert (wrong_method.status, wrong_method.headers["Allow"]) == (405, "POST")
    assert (page.status, page.headers["Allow"]) == (405, "GET, HEAD")
    assert (form.status, form.headers["X-Error-Code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")


@pytest.mark.parametrize("size", [BODY_LIMIT + 1, 5 * BODY_LIMIT])
def test_a_web_server_passes_the_refusal_of_a_large_body_on(site: Site, size: int) -> None:
    response = site.request("POST", "add", b" " * size, "application/json")

    assert response.status == 413
    assert response.body == b'{"error":"Body larger than 1048576 bytes"}'


def test_a_chunked_body_is_answered(site: Site) -> None:
    """Apache passes it on without its length, which the program refuses."""
    chunks = iter([b'{"x": 7,', b' "y": 3}'])

    response = site.request("POST", "add", chunks, "application/json")

    assert (response.status, b"Content-Length is missing" in response.body) in [
        (200, False),
        (400, True),
    ]
