"""The state through pgbouncer in transaction mode: each transaction may get another connection."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.docs.test_cgi_servers import find
from tests.ports import listening
from tests.state.postgres import Postgres, open_folder, unprivileged
from tests.state.stores import SECRET, make_tables

from answerback.core.limits import TaskLimits
from answerback.state.shared import SharedState
from answerback.tasks.postgres_store import PostgresStore
from answerback.tasks.task_record import TaskRecord, new_id


@pytest.fixture
def pooled_url(postgres: Postgres, state_url: str) -> Iterator[str]:
    """The database's URL through a pooler that has two connections to the server."""
    program = find("pgbouncer")
    with tempfile.TemporaryDirectory(dir=open_folder()) as folder:
        os.chmod(folder, 0o755)
        with pooling(program, Path(folder), postgres, state_url) as url:
            yield url


@contextmanager
def pooling(program: str, folder: Path, postgres: Postgres, state_url: str) -> Iterator[str]:
    name = state_url.rpartition("/")[2]
    users, settings = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text('"postgres" ""\n')

    def command(port: int) -> list[str | Path]:
        settings.write_text(
            f"[databases]\n{name} = host=127.0.0.1 port={postgres.port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
            f"auth_type = any\nauth_file = {users}\npool_mode = transaction\n"
            "default_pool_size = 2\n"
        )
        for file in (users, settings):
            file.chmod(0o644)
        return [program, settings]

    with listening(command, folder / "log", cwd=folder, **unprivileged()) as pooler:
        yield f"postgresql://postgres@127.0.0.1:{pooler.port}/{name}"


def test_tasks_are_claimed_once_and_told_of_through_a_pooler(
    pooled_url: str, state_url: str
) -> None:
    make_tables(pooled_url)
    hosts = [SharedState(pooled_url, [SECRET], state_url) for _ in range(2)]
    stores = [PostgresStore(host, "jobs") for host in hosts]
    ready, told = threading.Event(), threading.Event()
    hosts[1].notices.listen("task", lambda id: (told if id else ready).set())
    assert ready.wait(20)
    claimed: list[str] = []

    def work(store: PostgresStore, worker: str) -> None:
        for _ in range(30):
            now = store.now()
            task = TaskRecord(id=new_id(), tool="job", arguments=b"{}", created=now, changed=now)
            store.add(task, TaskLimits())
            claimed.extend(each.id for each in store.claim(worker, 10, 2, ["job"]))
            store.renew([worker], 10)

    threads = [
        threading.Thread(target=work, args=(store, f"w{n}")) for n, store in enumerate(stores * 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    claimed.extend(each.id for each in stores[0].claim("w", 10, 200, ["job"]))

    assert len(claimed) == len(set(claimed)) == 120
    assert told.wait(20)
    for host in hosts:
        host.close()
