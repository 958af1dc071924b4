"""Runs the files of docs/guides/cluster.md: units, the Compose file, Kubernetes manifests."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import ExitStack
from importlib.resources import files
from pathlib import Path
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
import yaml
from kubernetes_validate import (  # type: ignore[import-untyped]  # it ships no types
    latest_version,
    validate,
)
from tests.docs.test_cgi_servers import find
from tests.docs.test_deployment import SECRET, port_in, served
from tests.state.test_hosts import ASYNC, JOBS, WAIT

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "cluster.md").read_text()
PROGRAM = "/srv/tools/.venv/bin/answerback"
Words = list[str]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def unit_words() -> list[Words]:
    """The arguments of the servers' and the workers' unit."""
    found = []
    for unit in blocks("ini"):
        line = re.search(rf"^ExecStart={PROGRAM} (.*?[^\\])$", unit, re.DOTALL | re.MULTILINE)
        assert line is not None
        text = line[1].replace("\\\n", " ").replace("/srv/tools/", "").replace("%i", "1")
        found.append(shlex.split(text))
    return found


def compose() -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(blocks("yaml")[0])["services"]
    return services


def manifests() -> dict[tuple[str, str], dict[str, Any]]:
    """The manifests by kind and name."""
    found = yaml.safe_load_all(blocks("yaml")[1])
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def container(kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any]
    [found] = manifests()[kind, name]["spec"]["template"]["spec"]["containers"]
    return found


def words_of(way: str) -> list[Words]:
    """What makes the tables, serves and works."""
    if way == "systemd":
        return [["state", "init"], *unit_words()]
    if way == "Compose":
        return [compose()[name]["command"] for name in ("tables", "server", "worker")]
    return [
        container("Job", "tools-tables-1")["args"],
        container("Deployment", "tools-server")["args"],
        container("Deployment", "tools-worker")["args"],
    ]


def on_free_port(words: Words) -> Words:
    """The command with a free port, and with the name that this test calls it by."""
    changed = [*words]
    changed[changed.index("--port") + 1] = "0"
    return [sys.executable, "-m", "answerback", *changed]


@pytest.mark.parametrize("way", ["systemd", "Compose", "Kubernetes"])
def test_the_commands_of_the_page_make_a_cluster_that_runs_tasks(
    way: str, state_url: str, tmp_path: Path
) -> None:
    shutil.copy(JOBS, tmp_path)
    tables, server, worker = words_of(way)
    host = {"Host": "tools.example.com"}
    state = {"ANSWERBACK_STATE": state_url}
    made = subprocess.run(
        [sys.executable, "-m", "answerback", *tables],
        env={"ANSWERBACK_SECRET": SECRET, **state},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert made.returncode == 0, made.stderr

    with ExitStack() as stack:
        ports = [
            port_in(stack.enter_context(served(on_free_port(words), tmp_path, **state)))
            for words in (server, worker)
        ]
        url = f"http://127.0.0.1:{ports[0]}"
        created = httpx.post(
            f"{url}/functions/job", json={"steps": 1}, headers=host | ASYNC, timeout=30
        )
        path = httpx.URL(created.headers["Location"]).path
        ended = httpx.get(f"{url}{path}", headers=host | WAIT, timeout=60)
        ready = [
            httpx.get(f"http://127.0.0.1:{port}/readyz", headers={"Host": name}, timeout=30)
            for port, name in zip(ports, ("tools.example.com", "127.0.0.1"), strict=True)
        ]

    assert ended.json()["status"] == "completed"
    assert [each.status_code for each in ready] == [200, 200]


def test_the_units_are_valid(tmp_path: Path) -> None:
    analyze = find("systemd-analyze")
    names = re.findall(r"`/etc/systemd/system/(.*?)`", PAGE)
    for name, text in zip(names, blocks("ini"), strict=True):
        unit = tmp_path / name.replace("@", "@1")
        unit.write_text(text.replace(PROGRAM, "/bin/sh").replace("User=tools\n", ""))
        done = subprocess.run(
            [analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert [line for line in done.stderr.splitlines() if unit.name in line] == []


def test_the_compose_file_is_valid() -> None:
    schemas = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((schemas / "compose-spec.json").read_text())

    found = jsonschema.Draft7Validator(schema).iter_errors(yaml.safe_load(blocks("yaml")[0]))

    assert [error.message for error in found] == []


@pytest.mark.parametrize("version", ["1.31.0", latest_version()])
def test_the_manifests_are_valid(version: str) -> None:
    # It returns the version of the schema that it has used, and raises for an invalid manifest.
    checked = [validate(each, version, strict=True) for each in manifests().values()]

    assert checked == [version.removesuffix(".0")] * 4


def test_the_compose_file_starts_the_tables_after_the_database_and_before_the_rest() -> None:
    services = compose()

    assert services["tables"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("server", "worker"):
        needs = services[name]["depends_on"]
        assert needs == {"tables": {"condition": "service_completed_successfully"}}
        port = services[name]["command"][services[name]["command"].index("--port") + 1]
        assert f"localhost:{port}/readyz" in services[name]["healthcheck"]["test"][-1]


def test_the_manifests_name_the_ports_labels_and_hosts_of_their_commands() -> None:
    service = manifests()["Service", "tools"]["spec"]
    for name in ("tools-server", "tools-worker"):
        spec = manifests()["Deployment", name]["spec"]
        found = container("Deployment", name)
        port = int(found["args"][found["args"].index("--port") + 1])
        assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
        assert found["readinessProbe"]["httpGet"]["port"] == port
        assert found["livenessProbe"]["httpGet"]["port"] == port
    server = container("Deployment", "tools-server")

    assert service["selector"] == {"app": "tools-server"}
    assert service["ports"][0]["targetPort"] == server["ports"][0]["containerPort"]
