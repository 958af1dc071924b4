"""Runs the files of docs/guides/recipes/{compose,kubernetes,aws-alb}.md as far as possible."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
import yaml
from kubernetes_validate import (  # type: ignore[import-untyped]  # it ships no types
    latest_version,
    validate,
)
from tests.conftest import Server
from tests.docs.stand_in_alb import LoadBalancer, balancing
from tests.docs.test_cgi_servers import find, running
from tests.docs.test_deployment import SECRET, port_in, served
from tests.records.support import replies_in
from tests.server.processes import BackgroundCall, refuses_connections, wait_until
from tests.state.test_hosts import ASYNC, JOBS, WAIT

from answerback import Limits
from answerback.server.asgi.sse import KEEP_ALIVE as COMMENTS
from answerback.server.http.server_options import ServeOptions

ROOT = Path(__file__).parent.parent.parent
GUIDES = ROOT / "docs" / "guides"
COMPOSE, KUBERNETES, ALB = (
    (GUIDES / "recipes" / f"{name}.md").read_text() for name in ("compose", "kubernetes", "aws-alb")
)
CLUSTER = (GUIDES / "cluster.md").read_text()
HOST = {"Host": "tools.example.com"}
PROBE = {"Host": "10.1.2.3:8000"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
BOUND = 60
SHUTDOWN = Limits().shutdown
"""Seconds that running calls have after SIGTERM."""


class Loader(yaml.SafeLoader):  # type: ignore[misc]  # it ships no types
    """Reads the tags of CloudFormation (`!Ref`) and Compose (`!reset`)."""


def _tagged(loader: Any, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node)
    return {tag: loader.construct_scalar(node)}


Loader.add_multi_constructor("!", _tagged)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def loaded(page: str, number: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(blocks(page, "yaml")[number], Loader)
    return found


def command(words: list[str]) -> list[str]:
    """A command of the page, on a free port."""
    changed = [*words]
    changed[changed.index("--port") + 1] = "0"
    return [sys.executable, "-m", "answerback", *changed]


def make_tables(words: list[str], state_url: str) -> dict[str, str]:
    """Make the tables of a state with a command of the page, and return the environment."""
    environ = os.environ | {"ANSWERBACK_SECRET": SECRET, "ANSWERBACK_STATE": state_url}
    made = [sys.executable, "-m", "answerback", *words]
    subprocess.run(made, env=environ, check=True, capture_output=True, timeout=BOUND)
    return environ


def option(words: list[str], name: str) -> str:
    return words[words.index(name) + 1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(JOBS, tmp_path)
    shutil.copy(ROOT / "examples" / "calculator.py", tmp_path)
    return tmp_path


# Compose


def merged(first: Any, second: Any) -> Any:
    """Two Compose files as one: maps are merged, other values replaced."""
    if isinstance(first, dict) and isinstance(second, dict):
        names = dict.fromkeys((*first, *second))
        return {
            name: merged(first[name], second[name])
            if name in first and name in second
            else second.get(name, first.get(name))
            for name in names
        }
    return second


def several() -> dict[str, Any]:
    [first, _] = blocks(CLUSTER, "yaml")
    found: dict[str, Any] = merged(yaml.safe_load(first), loaded(COMPOSE, 1))
    return found


@pytest.mark.parametrize("which", ["one server", "several servers"])
def test_the_compose_files_are_valid(which: str) -> None:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text())
    file = loaded(COMPOSE) if which == "one server" else several()

    found = jsonschema.Draft7Validator(schema).iter_errors(file)

    assert [error.message for error in found] == []


def compose_script(folder: Path) -> str:
    """The shell script of the single server, with the folder in place of the container's."""
    script: str = loaded(COMPOSE)["services"]["server"]["command"][2]
    (folder / "answerback_secret").write_text(SECRET)
    for old, new in (
        ("$$", "$"),
        ("/run/secrets", str(folder)),
        ("/data", str(folder)),
        ("exec answerback", f"exec {shlex.quote(sys.executable)} -m answerback"),
    ):
        assert old in script
        script = script.replace(old, new)
    return script


def test_the_single_server_of_compose_serves_with_its_secret_and_ends_by_sigterm(
    folder: Path,
) -> None:
    environ = {"PORT": "0", "HOST": "0.0.0.0", "ANSWERBACK_SECRET": ""}
    health = loaded(COMPOSE)["services"]["server"]["healthcheck"]["test"]

    with served(["sh", "-c", compose_script(folder)], folder, **environ) as banner:
        port = port_in(banner)
        checked = [sys.executable, *health[2:-1], health[-1].replace("8000", str(port))]
        called = httpx.post(
            f"http://127.0.0.1:{port}/functions/add", json={"x": 7, "y": 3}, headers=HOST
        )
        healthy = subprocess.run(checked, capture_output=True, timeout=BOUND)

    # The context manager sends SIGTERM to the shell's process, and waits for its end.
    assert called.json() == {"result": 10}
    assert healthy.returncode == 0, healthy.stderr
    assert "set ANSWERBACK_SECRET" not in banner
    assert len(replies_in(folder / "audit.db")) == 1


def test_the_single_server_of_compose_does_not_start_without_its_secret(folder: Path) -> None:
    script = compose_script(folder)
    (folder / "answerback_secret").unlink()

    ended = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, timeout=BOUND)

    assert ended.returncode != 0
    assert b"answerback_secret" in ended.stderr


class Several(NamedTuple):
    """nginx with the page's configuration, in front of two servers that share a state."""

    url: str
    processes: list[subprocess.Popen[bytes]]

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return httpx.post(
            f"{self.url}{path}", json=body, headers=HOST | ACCEPT | headers, timeout=BOUND
        )


@pytest.fixture
def several_servers(state_url: str, folder: Path) -> Iterator[Several]:
    nginx = find("nginx")
    services = several()["services"]
    environ = make_tables(services["tables"]["command"], state_url)
    words = [
        "127.0.0.1/32" if word == "172.30.7.0/24" else word
        for word in services["server"]["command"]
    ]
    assert words[-2:] == ["--drain", "10"]
    words[-1] = "3"
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir="/tmp") as place:
        processes = []
        for _ in range(2):
            process = subprocess.Popen(
                command(words), cwd=folder, env=environ, stderr=subprocess.PIPE
            )
            stack.callback(process.communicate, timeout=BOUND)
            stack.callback(process.terminate)
            processes.append(process)
        worker = command(services["worker"]["command"])
        stack.enter_context(served(worker, folder, ANSWERBACK_STATE=state_url))
        ports = [Server(process).port for process in processes]

        def on_port(port: int) -> list[str]:
            _write_nginx(Path(place), port, ports)
            return [nginx, "-e", f"{place}/nginx.log", "-c", f"{place}/nginx.conf"]

        port = stack.enter_context(running(on_port, Path(place)))
        yield Several(f"http://127.0.0.1:{port}", processes)


def _write_nginx(place: Path, port: int, ports: list[int]) -> None:
    page = blocks(COMPOSE, "nginx")[0]
    servers = "".join(f"server 127.0.0.1:{each} max_fails=1 fail_timeout=2s;" for each in ports)
    for old, new in (
        # Debian's nginx does not know `resolve` in an upstream, and Docker's DNS is not here.
        ("    resolver 127.0.0.11 valid=2s;\n", ""),
        ("server server:8000 resolve max_fails=1 fail_timeout=2s;", servers),
        ("keepalive_timeout 5s", "keepalive_timeout 1s"),
        ("listen 443 ssl", f"listen 127.0.0.1:{port}"),
        ("    ssl_certificate /etc/ssl/tools/tools.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/tools/tools.key;\n", ""),
    ):
        assert old in page
        page = page.replace(old, new)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {place}/{kind};" for kind in kinds)
    (place / "nginx.conf").write_text(
        f"pid {place}/nginx.pid; error_log {place}/nginx.log; daemon off; events {{}}\n"
        f"http {{ access_log off; {temporary}\n{page}\n}}"
    )


def test_a_session_and_a_task_go_through_nginx_to_any_server(several_servers: Several) -> None:
    site = several_servers
    params = {"protocolVersion": "2025-11-25", "capabilities": {}}
    client = {"clientInfo": {"name": "test", "version": "1"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params | client}
    session = {"Mcp-Session-Id": site.post("/mcp", asked).headers["mcp-session-id"]}
    call = {"name": "add", "arguments": {"x": 7, "y": 3}}
    message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}

    answers = [site.post("/mcp", message, **session).json() for _ in range(6)]
    created = site.post("/functions/job", {"steps": 1}, **ASYNC)
    path = httpx.URL(created.headers["Location"]).path
    ended = httpx.get(f"{site.url}{path}", headers=HOST | WAIT, timeout=BOUND)

    assert [each["result"]["structuredContent"] for each in answers] == [{"result": 10}] * 6
    assert ended.json()["status"] == "completed"


def test_calls_are_answered_while_a_server_behind_nginx_is_stopped(
    several_servers: Several,
) -> None:
    site = several_servers
    statuses: list[int] = []
    stopped = threading.Event()

    def call_until_stopped() -> None:
        after = 0
        while after < 20:
            statuses.append(site.post("/functions/add", {"x": 7, "y": 3}).status_code)
            after += stopped.is_set()

    calls = BackgroundCall(call_until_stopped)
    wait_until(lambda: len(statuses) > 20)
    site.processes[0].send_signal(signal.SIGTERM)
    site.processes[0].wait(BOUND)
    stopped.set()
    calls.join(BOUND)

    assert calls.result is None
    assert [status for status in statuses if status != 200] == []


# Kubernetes


def manifests() -> dict[str, dict[str, Any]]:
    found = yaml.safe_load_all(blocks(KUBERNETES, "yaml")[0])
    return {each["kind"]: each for each in found}


def pod() -> dict[str, Any]:
    found: dict[str, Any] = manifests()["Deployment"]["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize("version", ["1.31.0", latest_version()])
def test_the_manifests_are_valid(version: str) -> None:
    checked = [validate(each, version, strict=True) for each in manifests().values()]

    assert checked == [version.removesuffix(".0")] * 5


def test_the_manifests_fit_together() -> None:
    found, [server] = manifests(), pod()["containers"]
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    [port] = server["ports"]
    [rule] = found["Ingress"]["spec"]["rules"]
    [path] = rule["http"]["paths"]

    assert labels == found["Deployment"]["spec"]["selector"]["matchLabels"]
    assert labels == found["Service"]["spec"]["selector"]
    assert labels == found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]
    scaled = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    assert scaled["name"] == found["Deployment"]["metadata"]["name"]
    assert port["containerPort"] == int(option(server["args"], "--port"))
    assert rule["host"] == option(server["args"], "--allow-host")
    assert path["backend"]["service"] == {"name": "tools", "port": {"name": "http"}}
    assert found["Service"]["spec"]["ports"][0]["targetPort"] == port["name"]


def test_a_pod_has_more_time_to_end_than_it_needs() -> None:
    [server] = pod()["containers"]
    waits = server["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert pod()["terminationGracePeriodSeconds"] > waits + SHUTDOWN


def test_the_pods_command_answers_its_probes_and_refuses_its_address_elsewhere(
    state_url: str, folder: Path
) -> None:
    [server] = pod()["containers"]
    state = {"ANSWERBACK_STATE": state_url}
    probes = [server[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe")]
    make_tables(["state", "upgrade"], state_url)

    with served(command(server["args"]), folder, **state) as banner:
        url = f"http://127.0.0.1:{port_in(banner)}"
        healthy = [httpx.get(f"{url}{path}", headers=PROBE).status_code for path in probes]
        called = httpx.post(f"{url}/functions/add", json={"x": 1, "y": 2}, headers=PROBE)
        by_name = httpx.post(f"{url}/functions/add", json={"x": 1, "y": 2}, headers=HOST)

    assert healthy == [200, 200]
    assert called.status_code == 421
    assert by_name.json() == {"result": 3}


def test_a_pod_that_ends_finishes_its_calls_and_takes_no_new_connection(
    state_url: str, folder: Path
) -> None:
    [server] = pod()["containers"]
    file = folder / "go-on"
    environ = make_tables(["state", "upgrade"], state_url)

    with subprocess.Popen(
        command(server["args"]), cwd=folder, env=environ, stderr=subprocess.PIPE
    ) as process:
        port = Server(process).port
        address, body = f"http://127.0.0.1:{port}/functions/until", {"path": str(file)}
        call = BackgroundCall(lambda: httpx.post(address, json=body, headers=HOST, timeout=BOUND))
        wait_until(Path(f"{file}.begun").exists)
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses_connections(port))
        file.touch()
        call.join(BOUND)
        status = process.wait(BOUND)

    assert call.result.json() == {"result": "done"}
    assert call.result.headers["connection"] == "close"
    assert status == 0


# AWS


def template() -> dict[str, Any]:
    return loaded(ALB)


def container() -> dict[str, Any]:
    found: dict[str, Any]
    [found] = template()["Resources"]["Task"]["Properties"]["ContainerDefinitions"]
    return found


def attributes(resource: str, name: str) -> dict[str, str]:
    found = template()["Resources"][resource]["Properties"][name]
    return {each["Key"]: each["Value"] for each in found}


def template_words() -> list[str]:
    values = {"HostName": "tools.example.com", "VpcNetwork": "127.0.0.0/8"}
    words = container()["Command"]
    return [values[word["Ref"]] if isinstance(word, dict) else word for word in words]


def test_every_reference_of_the_template_exists() -> None:
    text = blocks(ALB, "yaml")[0]
    known = {*template()["Parameters"], *template()["Resources"]}
    used = {name for name in re.findall(r"!(?:Ref|GetAtt) (\w+)(?!::)\b", text) if name != "AWS"}

    assert used - known == set()
    # What a resource names as a text would not be found above.
    assert template()["Resources"]["Service"]["DependsOn"] in known


def test_the_times_of_the_template_fit_the_server() -> None:
    idle = int(attributes("LoadBalancer", "LoadBalancerAttributes")["idle_timeout.timeout_seconds"])
    target = attributes("TargetGroup", "TargetGroupAttributes")

    assert int(option(template_words(), "--keep-alive")) > idle
    assert idle > 2 * COMMENTS
    assert container()["StopTimeout"] > SHUTDOWN
    assert container()["StopTimeout"] <= 120
    assert int(target["deregistration_delay.timeout_seconds"]) >= SHUTDOWN
    # The default is enough behind nginx, and behind an ALB as AWS makes it.
    assert ServeOptions().keep_alive > 60


def test_the_ports_of_the_template_are_the_servers() -> None:
    resources = template()["Resources"]
    port = int(option(template_words(), "--port"))
    [balanced] = resources["Service"]["Properties"]["LoadBalancers"]
    [ingress] = resources["ServerGroup"]["Properties"]["SecurityGroupIngress"]

    assert container()["PortMappings"] == [{"ContainerPort": port}]
    assert balanced["ContainerPort"] == resources["TargetGroup"]["Properties"]["Port"] == port
    assert (ingress["FromPort"], ingress["ToPort"]) == (port, port)
    assert balanced["ContainerName"] == container()["Name"]


class Balanced(NamedTuple):
    """The template's command behind the stand-in for the ALB."""

    balancer: LoadBalancer
    folder: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.balancer.port}"


IDLE = 2.0
SLOW = """
import asyncio
from pathlib import Path

from answerback import App
from answerback.server.asgi import in_flight, sse

# As long as the idle time-out of the tests, in proportion.
sse.KEEP_ALIVE = in_flight.KEEP_ALIVE = 0.25
app = App("slow")


@app.tool
async def until(path: str) -> str:
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return "done"


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def balanced(folder: Path) -> Iterator[Balanced]:
    """A server whose stream comments come eight times within the idle time-out."""
    (folder / "slow.py").write_text(SLOW)
    words = [sys.executable, "slow.py", *template_words()]
    words.remove("--no-tasks")
    words.remove("jobs.py")
    words[words.index("--port") + 1] = "0"
    words += ["--audit", "audit.db"]
    with served(words, folder) as banner, balancing(port_in(banner), IDLE) as balancer:
        yield Balanced(balancer, folder)


def test_the_loads_balancers_health_check_is_answered(balanced: Balanced) -> None:
    path = template()["Resources"]["TargetGroup"]["Properties"]["HealthCheckPath"]

    checked = httpx.get(f"{balanced.url}{path}", headers=PROBE, timeout=BOUND)
    elsewhere = httpx.get(f"{balanced.url}/functions", headers=PROBE, timeout=BOUND)

    assert checked.status_code == 200
    assert elsewhere.status_code == 421


def test_a_rest_call_longer_than_the_idle_timeout_is_lost(balanced: Balanced) -> None:
    file = balanced.folder / "go-on"

    response = httpx.post(
        f"{balanced.url}/functions/until", json={"path": str(file)}, headers=HOST, timeout=BOUND
    )

    file.touch()
    assert response.status_code == 504


def test_an_mcp_call_much_longer_than_the_idle_timeout_is_answered(balanced: Balanced) -> None:
    file = balanced.folder / "go-on"
    call = {"name": "until", "arguments": {"path": str(file)}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}

    lines: list[str] = []
    with httpx.stream(
        "POST", f"{balanced.url}/mcp", json=message, headers=HOST | ACCEPT, timeout=BOUND
    ) as response:
        for line in response.iter_lines():
            lines.append(line)
            # Twice the idle time-out.
            if sum(each.startswith(":") for each in lines) == 16:
                file.touch()

    assert response.headers["content-type"].startswith("text/event-stream")
    [data] = [line for line in lines if line.startswith("data: {")]
    assert json.loads(data.removeprefix("data: "))["result"]["content"][0]["text"] == "done"


def test_an_open_stream_outlives_the_idle_timeout(balanced: Balanced) -> None:
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    started = httpx.post(f"{balanced.url}/mcp", json=asked, headers=HOST | ACCEPT, timeout=BOUND)
    session = {"Mcp-Session-Id": started.headers["mcp-session-id"]}
    accept = {"Accept": "text/event-stream"}

    comments = 0
    with httpx.stream(
        "GET", f"{balanced.url}/mcp", headers=HOST | session | accept, timeout=BOUND
    ) as response:
        for line in response.iter_lines():
            comments += line.startswith(":")
            if comments == 16:
                break

    assert comments == 16


def test_the_records_have_the_address_that_the_load_balancer_saw(balanced: Balanced) -> None:
    forged = {"X-Forwarded-For": "192.0.2.1"}
    (balanced.folder / "there").touch()
    body = {"path": str(balanced.folder / "there")}

    httpx.post(f"{balanced.url}/functions/until", json=body, headers=HOST | forged, timeout=BOUND)

    (record,) = wait_until(lambda: replies_in(balanced.folder / "audit.db"))
    assert record.caller == "203.0.113.9"


def test_the_load_balancer_uses_its_connection_to_the_server_again(balanced: Balanced) -> None:
    for _ in range(3):
        assert httpx.get(f"{balanced.url}/readyz", timeout=BOUND, headers=HOST).is_success

    assert balanced.balancer.connections == 1


def test_the_server_closes_a_connection_after_its_keep_alive(folder: Path) -> None:
    words = [sys.executable, "calculator.py", "serve", "--port", "0", "--keep-alive", "1"]

    with (
        served(words, folder) as banner,
        socket.create_connection(("127.0.0.1", port_in(banner)), BOUND) as client,
    ):
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while part := client.recv(65536):
            received += part

    assert received.startswith(b"HTTP/1.1 200")
    assert b"connection: close" not in received.lower()
