"""The file of a widget: read once, and anew for each read in development mode."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.conftest import serving
from tests.protocol.recording_client import over_http
from tests.serving import ServedApp
from tests.widgets.mcp_requests import STATELESS, VERSIONS, ask, content, uri_of

from answerback import App
from answerback.registry.declarations import Change, registry_of


def bank(file: Path, *, development: bool) -> App:
    app = ServedApp("bank")
    app.widget("accounts", path=file, bridge=False)
    app.development = development
    return app


def read(app: App) -> str:
    text = asyncio.run(content(app, "accounts"))["text"]
    assert isinstance(text, str)
    return text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "accounts.html"
    file.write_text("<!doctype html><p>one")
    return file


def test_a_file_is_read_once(file: Path) -> None:
    app = bank(file, development=False)
    file.unlink()

    assert read(app) == "<!doctype html><p>one"


def test_development_mode_reads_the_file_anew_and_notifies_once_for_each_change(
    file: Path,
) -> None:
    app = bank(file, development=True)
    changes: list[Change] = []
    registry_of(app).changes.subscribe(changes.append)

    first = read(app)
    file.write_text("<!doctype html><p>two")
    second, third = read(app), read(app)

    assert (first, second, third) == (
        "<!doctype html><p>one",
        "<!doctype html><p>two",
        "<!doctype html><p>two",
    )
    assert changes == [Change("resource", uri_of("accounts"))]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_vanished_is_an_error_that_names_it(file: Path, version: str) -> None:
    app = bank(file, development=True)
    file.unlink()

    answer = asyncio.run(ask(app, "resources/read", {"uri": uri_of("accounts")}, version=version))

    assert (
        answer["error"]["message"]
        == f"widget: cannot read {str(file)!r}: No such file or directory"
    )


def test_a_file_that_comes_back_is_served_again(file: Path) -> None:
    app = bank(file, development=True)
    file.unlink()
    gone = asyncio.run(ask(app, "resources/read", {"uri": uri_of("accounts")}))
    file.write_text("<!doctype html><p>back")

    assert "error" in gone
    assert read(app) == "<!doctype html><p>back"


PROGRAM = """
from answerback import App

app = App("bank")
app.widget("accounts", path="accounts.html", bridge=False)
app.run()
"""


@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_with_reload_the_read_of_a_changed_file_notifies_the_subscribers(
    file: Path, version: str
) -> None:
    program = file.parent / "bank.py"
    program.write_text(PROGRAM)
    uri = {"uri": uri_of("accounts")}

    with serving(program, "--reload") as server, over_http(server.url, version) as client:
        client.open()
        if version != STATELESS:
            client.request("resources/subscribe", uri)

        def save_and_read() -> None:
            file.write_text("<!doctype html><p>new")
            with over_http(server.url, STATELESS) as another:
                another.request("resources/read", uri)

        changes = {"resourceSubscriptions": [uri_of("accounts")]}
        client.subscribe(changes, save_and_read, count=1)
        read = client.request("resources/read", uri)

    told = [each for each, _ in client.received if "updated" in each.get("method", "")]
    assert [each["params"]["uri"] for each in told] == [uri_of("accounts")]
    assert read["result"]["contents"][0]["text"] == "<!doctype html><p>new"


def test_debug_reads_the_file_anew(file: Path) -> None:
    program = file.parent / "bank.py"
    program.write_text(PROGRAM)

    with serving(program, "--debug") as server, over_http(server.url, STATELESS) as client:
        file.write_text("<!doctype html><p>new")
        read = client.request("resources/read", {"uri": uri_of("accounts")})

    assert read["result"]["contents"][0]["text"] == "<!doctype html><p>new"


def test_without_a_flag_the_server_keeps_the_page(file: Path) -> None:
    program = file.parent / "bank.py"
    program.write_text(PROGRAM)

    with serving(program) as server, over_http(server.url, STATELESS) as client:
        file.write_text("<!doctype html><p>new")
        read = client.request("resources/read", {"uri": uri_of("accounts")})

    assert read["result"]["contents"][0]["text"] == "<!doctype html><p>one"
