"""Uses an installed Answerback as its users do: `python smoke.py plain|serve|all`.

`make package` copies this file, the README's `calculator.py` and `files.json` into a folder outside
the project, and runs it there with the environment's own Python. So it imports only the standard
library and Answerback. It prints JSON: a list of steps, each with its problem or null.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import threading
import traceback
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

HERE = Path(__file__).parent
SCRIPTS = Path(sysconfig.get_path("scripts"))
ANSWERBACK = str(SCRIPTS / "answerback")
SECONDS = 120
NOTHING: Mapping[str, str] = MappingProxyType({})
# Every warning is an error, in Answerback's own code and in what it imports.
VARIABLES = {"PYTHONWARNINGS": "error", "HOME": str(HERE), "NO_COLOR": "1"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "smoke", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CALL = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"x": 7, "y": 3}},
}
TEN = {"result": 10}


def run(
    *command: str, stdin: str = "", variables: Mapping[str, str] = NOTHING, status: int = 0
) -> str:
    """Run a command to its end and return its stdout; another exit status is an error."""
    done = subprocess.run(
        command,
        cwd=HERE,
        env={**os.environ, **VARIABLES, **variables},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode != status:
        said = f"{done.stdout}\n{done.stderr}".strip()[-2000:]
        raise AssertionError(f"{command} exited with {done.returncode}, not {status}:\n{said}")
    return done.stdout if status == 0 else done.stdout + done.stderr


def answerback(*words: str, **options: Any) -> str:
    return run(ANSWERBACK, *words, **options)


def calculator(*words: str, **options: Any) -> str:
    return run(sys.executable, "calculator.py", *words, **options)


def equal(found: object, expected: object) -> None:
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r}")


def contains(text: str, part: str) -> None:
    if part not in text:
        raise AssertionError(f"expected {part!r} in {text[:2000]!r}")


# Every environment


def it_is_the_installed_package() -> None:
    import answerback as package

    assert package.__file__ is not None
    equal(Path(package.__file__).parent.parent, Path(sysconfig.get_path("purelib")))


def every_file_is_there_and_no_other_package_was_installed() -> None:
    expected = set(json.loads((HERE / "files.json").read_text()))
    listed = {each.as_posix() for each in importlib.metadata.files("answerback") or ()}

    library = {name for name in listed if "/__pycache__/" not in name and ".dist-info/" not in name}
    equal(sorted(library - expected), [name for name in library if name.endswith("/answerback")])
    purelib = Path(sysconfig.get_path("purelib"))
    equal([name for name in sorted(expected) if not (purelib / name).is_file()], [])


def the_version_is_that_of_the_metadata() -> None:
    version = importlib.metadata.version("answerback")

    equal(answerback("--version"), f"answerback {version}\n")
    equal(run(sys.executable, "-m", "answerback", "--version"), f"answerback {version}\n")


def every_command_has_help() -> None:
    listed = answerback("--help").partition("commands:\n")[2].partition("\n\n")[0]
    commands = re.findall(r"^  (\w+) ", listed, re.MULTILINE)

    assert len(commands) > 15, listed
    for command in commands:
        contains(answerback(command, "--help"), "usage: ")


def the_calculator_is_called_and_listed() -> None:
    equal(json.loads(calculator("call", "add", "x=7", "y=3")), TEN)
    equal(json.loads(answerback("call", "calculator.py", "add", "x=7", "y=3")), TEN)
    contains(calculator("call", "add", "x=7", "y=three", status=2), "INVALID_ARGUMENTS")
    equal([each["name"] for each in json.loads(calculator("list", "--json"))], ["add"])
    contains(calculator("openapi"), "/functions/add")


def mcp_over_stdio_answers() -> None:
    sent = "".join(f"{json.dumps(each)}\n" for each in (INITIALIZE, INITIALIZED, CALL))

    first, second = map(json.loads, calculator("mcp", stdin=sent).splitlines())

    equal(first["result"]["serverInfo"]["name"], "calculator")
    equal(second["result"]["structuredContent"], TEN)


def cgi_answers() -> None:
    body = '{"x": 7, "y": 3}'
    variables = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/add",
        "CONTENT_LENGTH": str(len(body)),
    }

    head, _, reply = calculator(stdin=body, variables=variables).partition("\n\n")

    contains(head, "Status: 200")
    equal(json.loads(reply), TEN)


def the_client_calls_the_calculator() -> None:
    program = """
import sys
from answerback import connect

with connect([sys.executable, "calculator.py", "mcp"]) as server:
    print(server.call("add", x=7, y=3).data)
"""
    equal(run(sys.executable, "-c", program).strip(), "10")


def a_new_project_runs() -> None:
    contains(answerback("new", "my-notes"), "cd my-notes")

    variables = {"PYTHONPATH": str(HERE / "my-notes" / "src")}
    words = (sys.executable, "-m", "my_notes", "call", "greet", "name=Ada")
    equal(json.loads(run(*words, variables=variables)), {"result": "Hello, Ada!"})


# Without an extra


def only_msgspec_came_along() -> None:
    names = {each.metadata["Name"].lower() for each in importlib.metadata.distributions()}

    # Environments of Python 3.11 have setuptools.
    equal(names - {"pip", "setuptools"}, {"answerback", "msgspec"})


def a_missing_extra_is_named() -> None:
    contains(calculator("serve", status=2), "pip install 'answerback[serve]'")


# With [serve]


@contextmanager
def served() -> Iterator[str]:
    """The address of the calculator, which is served until the end of the block."""
    server = subprocess.Popen(
        [sys.executable, "calculator.py", "serve", "--port", "0"],
        cwd=HERE,
        env=os.environ | VARIABLES,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    too_late = threading.Timer(SECONDS, server.kill)
    too_late.start()
    try:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        shown = re.search(r"http://[\d.:]+", "".join(lines))
        assert shown is not None, "".join(lines)
        yield shown[0]
        server.terminate()
        rest = server.stdout.read()
        equal((server.wait(), "Warning" in rest or "Traceback" in rest), (0, False))
    finally:
        too_late.cancel()
        server.kill()
        server.wait()


def fetch(url: str, body: object = None, **headers: str) -> tuple[str, Any]:
    """The response's text and headers."""
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json"} if data else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(url, data, sent), timeout=SECONDS) as got:
        return got.read().decode(), got.headers


def rest_mcp_and_the_console_are_served() -> None:
    with served() as url:
        equal(json.loads(fetch(f"{url}/functions/add", {"x": 7, "y": 3})[0]), TEN)
        equal(json.loads(fetch(f"{url}/openapi.json")[0])["info"]["title"], "calculator")
        fetch(f"{url}/healthz")

        accept = "application/json, text/event-stream"
        text, headers = fetch(f"{url}/mcp", INITIALIZE, Accept=accept)
        contains(text, '"protocolVersion":"2025-11-25"')
        session = {"Mcp_Session_Id": headers["Mcp-Session-Id"], "Accept": accept}
        text, _ = fetch(f"{url}/mcp", CALL, MCP_Protocol_Version="2025-11-25", **session)
        contains(text, '"structuredContent":{"result":10}')

        page, headers = fetch(url, Accept="text/html")
        contains(headers["Content-Security-Policy"], "script-src")
        contains(page, "</html>")
        assert len(page) > 50_000, f"the console's page has only {len(page)} characters"


# With [all]


def every_module_is_imported_without_a_warning() -> None:
    program = """
import importlib
import pkgutil

import answerback
from answerback.errors import MissingExtraError

for module in pkgutil.walk_packages(answerback.__path__, "answerback."):
    if module.name != "answerback.__main__":
        try:
            importlib.import_module(module.name)
        except (MissingExtraError, ModuleNotFoundError):
            print(module.name.removeprefix("answerback."))
"""
    # These need packages that users of them have, and that `[all]` does not install.
    found = run(sys.executable, "-c", program).split()
    equal(found, ["middleware.fastmcp", "types.pydantic_types"])


def lint_finds_errors() -> None:
    (HERE / "replies.jsonl").write_text('{"success": true}\n')

    contains(answerback("lint", "replies.jsonl", status=1), "AB102")
    contains(answerback("rule", "AB102"), "missing-content")


def pytest_loads_the_plugin() -> None:
    (HERE / "test_calculator.py").write_text(
        """
import asyncio

from answerback.testing import assert_valid_reply
from calculator import app


def test_add(answerback_client):
    reply = asyncio.run(app.call("add", x=7, y=3))

    assert_valid_reply(reply)
    assert reply.data == 10
"""
    )
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_calculator.py")
    contains(run(*words), "1 passed")


def a_new_project_is_installed_and_passes_its_tests() -> None:
    pip = (sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, "./my-notes[serve]", variables={"PYTHONWARNINGS": "default"})

    greeting = run(str(SCRIPTS / "my-notes"), "call", "greet", "name=Ada")
    equal(json.loads(greeting), {"result": "Hello, Ada!"})
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "my-notes")
    contains(run(*words), "4 passed")


def mypy_sees_the_types() -> None:
    (HERE / "typed.py").write_text(
        """
from answerback import App, success

app = App("typed")
reveal_type(success({"n": 1}))
App(7)
"""
    )
    words = ("-m", "mypy", "--strict", "typed.py")
    shown = run(sys.executable, *words, status=1, variables={"PYTHONWARNINGS": "default"})

    contains(shown, "answerback.core.reply.Reply[")
    contains(shown, "Found 1 error in 1 file")


Step = Callable[[], None]
EVERYWHERE: list[Step] = [
    it_is_the_installed_package,
    every_file_is_there_and_no_other_package_was_installed,
    the_version_is_that_of_the_metadata,
    every_command_has_help,
    the_calculator_is_called_and_listed,
    mcp_over_stdio_answers,
    cgi_answers,
    the_client_calls_the_calculator,
    a_new_project_runs,
]
STEPS: dict[str, list[Step]] = {
    "plain": [*EVERYWHERE, only_msgspec_came_along, a_missing_extra_is_named],
    "serve": [*EVERYWHERE, rest_mcp_and_the_console_are_served],
    "all": [
        *EVERYWHERE,
        rest_mcp_and_the_console_are_served,
        every_module_is_imported_without_a_warning,
        lint_finds_errors,
        pytest_loads_the_plugin,
        a_new_project_is_installed_and_passes_its_tests,
        mypy_sees_the_types,
    ],
}


def main(kind: str) -> None:
    results = []
    for step in STEPS[kind]:
        try:
            step()
            problem = None
        except Exception:  # noqa: BLE001 - every problem of a step is reported, and the next one runs
            problem = traceback.format_exc(limit=-2)
        results.append([step.__name__.replace("_", " "), problem])
    sys.stdout.write(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1])
