"""Connections to PostgreSQL: deadlines, forks, restarts, abandoned locks, and poolers."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import monotonic

import psycopg
import pytest
from tests.fuzz.stdio_client import wait_until
from tests.state.postgres import Postgres
from tests.state.stores import SECRET, make_tables

from answerback.errors import Unavailable
from answerback.state.database import MAX_CONNECTIONS, Database
from answerback.state.shared import SharedState


@pytest.fixture
def database(state_url: str) -> Iterator[Database]:
    make_tables(state_url)
    made = Database(state_url)
    yield made
    made.close()


def _connections(url: str) -> int:
    """Count the connections of Answerback in the database."""
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'answerback'"
            " AND datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def _sockets() -> int:
    """Count the sockets of this process."""
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found


def test_a_statement_on_a_paused_database_ends_by_the_deadline_and_closes_its_socket(
    postgres: Postgres, database: Database
) -> None:
    before = _sockets()
    database.now()
    opened = _sockets()

    postgres.pause()
    try:
        began = monotonic()
        with pytest.raises(Unavailable):
            database.now()
        seconds = monotonic() - began
        after = _sockets()
    finally:
        postgres.resume()

    assert (opened, after) == (before + 1, before)
    assert 2 < seconds < 8
    wait_until(lambda: _answers(database))


def _answers(database: Database) -> bool:
    try:
        return database.now() > 0
    except Unavailable:
        return False


def test_a_database_that_was_restarted_is_used_again_at_once(
    postgres: Postgres, database: Database
) -> None:
    database.now()

    postgres.stop()
    postgres.start()

    assert database.now() > 0


def test_connections_that_the_server_ends_are_replaced(database: Database, state_url: str) -> None:
    database.now()
    with psycopg.connect(state_url) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'answerback' AND datname = current_database()"
        )
    wait_until(lambda: _connections(state_url) == 0)

    assert database.now() > 0


def test_many_threads_share_four_connections(database: Database, state_url: str) -> None:
    threads = [threading.Thread(target=database.now) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert 1 <= _connections(state_url) <= MAX_CONNECTIONS


def test_a_fork_during_a_statement_leaves_the_child_and_its_parent_usable(
    database: Database,
) -> None:
    database.now()
    # Another thread of the parent is about to take or return a connection.
    with database._lock:
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)
            os._exit(0 if _answers(database) else 1)
    _, status = os.waitpid(pid, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert database.now() > 0


def test_a_transaction_whose_process_is_paused_loses_its_locks(
    database: Database, state_url: str
) -> None:
    other = Database(state_url)
    change = "UPDATE answerback.schema_version SET version = version"
    outcomes = []

    def is_free() -> bool:
        try:
            other.rows(change)
        except Unavailable:
            return False
        outcomes.append("free")
        return True

    with suppress(Unavailable), database.transaction() as paused:
        paused.execute(change)
        wait_until(is_free)
    other.close()

    assert outcomes == ["free"]


def test_no_statement_is_prepared(database: Database) -> None:
    counts = set()
    for _ in range(20):
        [row] = database.rows("SELECT count(*) FROM pg_prepared_statements WHERE %s > 0", 1)
        counts.add(row[0])

    assert counts == {0}


class _Relay:
    """Passes the bytes between a client and the database, until it is silenced."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.silent: set[int] = set()
        self.accepted = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.accepted += 1
            number = self.accepted
            server = socket.create_connection(("127.0.0.1", self._port))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(number, *pair), daemon=True).start()

    def _copy(self, number: int, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if number not in self.silent:
                    target.sendall(data)
        except OSError:
            pass
        finally:
            source.close()
            target.close()


@contextmanager
def _relay(port: int) -> Iterator[_Relay]:
    relay = _Relay(port)
    try:
        yield relay
    finally:
        relay.close()


def test_a_listening_connection_that_went_silent_is_replaced(
    postgres: Postgres, state_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The seconds after which a silent connection is asked.
    monkeypatch.setattr("answerback.state.shared._LISTEN", 1.0)
    make_tables(state_url)
    ready, received = threading.Event(), threading.Event()
    with _relay(postgres.port) as relay:
        listen = state_url.replace(f":{postgres.port}/", f":{relay.port}/")
        listening = SharedState(state_url, [SECRET], listen)
        sending = SharedState(state_url, [SECRET])
        listening.notices.listen("task", lambda id: (received if id else ready).set())
        assert ready.wait(20)

        relay.silent.add(1)
        wait_until(lambda: relay.accepted == 2)

        def is_received() -> bool:
            sending.notices.send("task", "one")
            return received.wait(0.2)

        wait_until(is_received)
        listening.close()
        sending.close()
