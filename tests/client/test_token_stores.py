"""Where logins are kept: in memory, in a private file, in the keyring."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest
from tests.client.login_server import LoginServer, login_servers

from answerback import connect
from answerback.client.faults import LoginError
from answerback.client.login import (
    FileTokens,
    KeyringTokens,
    Login,
    MemoryTokens,
    RegisteredClient,
    TokenStore,
)


class KeyringInMemory(keyring.backend.KeyringBackend):
    """A keyring without a daemon of the system."""

    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("there is none")


@pytest.fixture
def system_keyring() -> Iterator[KeyringInMemory]:
    before = keyring.get_keyring()
    found = KeyringInMemory()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


@pytest.fixture(params=["memory", "file", "keyring"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, system_keyring: KeyringInMemory
) -> TokenStore:
    match request.param:
        case "memory":
            return MemoryTokens()
        case "file":
            return FileTokens(tmp_path / "new folder" / "logins.json")
    return KeyringTokens()


@pytest.fixture(scope="module")
def new_server() -> Iterator[Callable[[], LoginServer]]:
    with login_servers() as make:
        yield make


def test_a_store_keeps_replaces_and_removes_texts(store: TokenStore) -> None:
    store.save("a", "1")
    store.save("b", "2")
    store.save("a", "3")
    store.save("b", None)
    store.save("never", None)

    assert (store.load("a"), store.load("b"), store.load("c")) == ("3", None, None)


def test_a_login_in_a_store_is_used_by_the_next_connection(
    store: TokenStore, new_server: Callable[[], LoginServer]
) -> None:
    server = new_server()
    for _ in range(2):
        with connect(server.url, auth=Login(open_url=server.visit, store=store)) as remote:
            reply = remote.call("greet")

    assert reply.ok
    assert len(server.paths("/authorize")) == 1


def test_a_login_is_not_used_for_another_server_client_or_issuer(
    new_server: Callable[[], LoginServer],
) -> None:
    store = MemoryTokens()
    server = new_server()
    with connect(server.url, auth=Login(open_url=server.visit, store=store)):
        pass
    with connect(server.url, auth=Login("other", open_url=server.visit, store=store)):
        pass
    with connect(server.url, auth=Login(open_url=server.visit, store=store)):
        pass
    clients = [query["client_id"] for path, query in server.requests if path == "/authorize"]

    assert clients == ["registered", "other"]
    assert server.used[-1] == "Bearer token-1"
    assert len({key for key in store._texts if key.startswith("token ")}) == 2


def test_the_secret_of_the_program_is_not_kept_with_its_tokens(
    new_server: Callable[[], LoginServer], tmp_path: Path
) -> None:
    server = new_server()
    client = RegisteredClient("known", "the secret", server.issuer)
    store = FileTokens(tmp_path / "logins.json")

    with connect(server.url, auth=Login(client, open_url=server.visit, store=store)):
        pass

    assert "token-1" in store.path.read_text()
    assert "the secret" not in store.path.read_text()


def test_the_file_is_private_and_nothing_else_is_left(tmp_path: Path) -> None:
    store = FileTokens(tmp_path / "folder" / "logins.json")
    before = os.umask(0)
    try:
        store.save("key", "text")
    finally:
        os.umask(before)

    modes = {each.name: each.stat().st_mode & 0o777 for each in store.path.parent.iterdir()}
    assert modes == {"logins.json": 0o600, "logins.json.lock": 0o600}
    assert store.path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    store = FileTokens(tmp_path / "logins.json")
    store.save("key", "text")
    store.path.chmod(0o644)

    with pytest.raises(LoginError, match="chmod 600"):
        store.load("key")


def test_a_file_that_is_no_file_of_logins_is_told(tmp_path: Path) -> None:
    store = FileTokens(tmp_path / "logins.json")
    store.save("key", "text")
    store.path.write_text("{")

    with pytest.raises(LoginError, match="remove it, and log in again"):
        store.load("key")


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logins.json"
    code = (
        "import sys\n"
        "from answerback.client.login import FileTokens\n"
        "store = FileTokens(sys.argv[1])\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "for number in range(25):\n"
        "    store.save(f'{sys.argv[2]} {number}', 'text')\n"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in ("a", "b")
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)

    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(json.loads(path.read_text())) == 50


def test_representations_show_no_secrets() -> None:
    store: Any = MemoryTokens()
    store.save("key", "the token")
    client = RegisteredClient("id", "the secret", private_key="the key")

    shown = repr([store, client, Login(client)])

    assert "the token" not in shown
    assert "the secret" not in shown
    assert "the key" not in shown


KILLED = """
import os, signal, sys
from answerback.client.login import FileTokens

os.replace = lambda *paths: os.kill(os.getpid(), signal.SIGKILL)
FileTokens(sys.argv[1]).save("key", "secret")
"""


def test_what_a_killed_process_left_beside_the_file_is_removed_by_the_next_save(
    tmp_path: Path,
) -> None:
    path = tmp_path / "logins.json"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    left = {each.name for each in tmp_path.iterdir()}

    FileTokens(path).save("other", "text")

    assert len(left) == 2  # The lock, and one file.
    assert {each.name for each in tmp_path.iterdir()} == {"logins.json", "logins.json.lock"}
