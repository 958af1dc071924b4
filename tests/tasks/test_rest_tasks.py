"""Tasks over REST: `Prefer`, the resource of a task, its owner, and idempotency keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
from tests.serving import ServedApp
from tests.tasks.task_client import TaskClient, run_with

from answerback import App, Ask, Context, Limits, NotFound, Unavailable
from answerback.auth import ApiKeys
from answerback.contract import DIRECT
from answerback.gates import login
from answerback.options import Task, TaskLimits
from answerback.registry.declarations import registry_of
from answerback.resilience import Limit
from answerback.server import cgi
from answerback.tasks.sqlite_store import SQLiteStore

ASYNC = {"Prefer": "respond-async"}
WAIT = {"Prefer": "wait=10"}


@pytest.fixture(params=["memory", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    made = ServedApp("jobs", limits=Limits(shutdown=1))
    if request.param == "sqlite":
        made.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    return made


def run(app: App, steps: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
    """Run *steps* with a client of the app, in this process."""

    async def main() -> Any:
        asgi = app.asgi()
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            async with asyncio.timeout(60):
                try:
                    return await steps(client)
                finally:
                    await asgi.stop()

    return asyncio.run(main())


def test_a_call_that_prefers_it_gets_a_task_and_later_the_reply(app: App) -> None:
    @app.tool(task="optional")
    def square(x: int) -> dict[str, int]:
        return {"square": x * x}

    async def steps(client: httpx.AsyncClient) -> Any:
        made = await client.post("/functions/square", json={"x": 7}, headers=ASYNC)
        location = made.headers["location"]
        done = await client.get(location, headers=WAIT)
        return made, done, await client.get(done.json()["resultUrl"])

    made, done, result = run(app, steps)
    assert made.status_code == 202
    assert made.headers["preference-applied"] == "respond-async"
    assert made.headers["cache-control"] == "no-store"
    assert (done.status_code, done.json()["status"]) == (200, "completed")
    assert (result.status_code, result.json()) == (200, {"square": 49})


def test_a_plain_call_of_an_optional_tool_waits_for_its_reply(app: App) -> None:
    app.add_tool(lambda: "done", name="work", task="optional")

    response = run(app, lambda client: client.post("/functions/work"))

    assert (response.status_code, response.json()) == (200, {"result": "done"})


def test_a_required_tool_answers_with_a_task_without_being_asked(app: App) -> None:
    app.add_tool(lambda: "done", name="work", task="required")

    response = run(app, lambda client: client.post("/functions/work"))

    assert response.status_code == 202
    assert "preference-applied" not in response.headers


def test_a_tool_without_tasks_ignores_the_preference(app: App) -> None:
    app.add_tool(lambda: "done", name="work")
    app.add_tool(lambda: "done", name="other", task="optional")

    response = run(app, lambda client: client.post("/functions/work", headers=ASYNC))

    assert response.status_code == 200
    assert "preference-applied" not in response.headers


def test_a_task_that_ends_within_the_wait_is_answered_by_its_reply(app: App) -> None:
    @app.tool(task="optional")
    def find() -> str:
        raise NotFound("no such order")

    headers = {"Prefer": 'respond-async, wait="10"'}
    response = run(app, lambda client: client.post("/functions/find", headers=headers))

    assert response.status_code == 404
    assert response.headers["preference-applied"] == "wait=10"
    assert response.headers["x-error-code"] == "NOT_FOUND"


def test_a_running_task_shows_its_progress_and_when_to_ask_again(app: App) -> None:
    reported = asyncio.Event()

    @app.tool(task="optional")
    async def work(ctx: Context) -> None:
        ctx.progress(3, 10, "reading")
        reported.set()
        await asyncio.Event().wait()

    async def steps(client: httpx.AsyncClient) -> Any:
        made = await client.post("/functions/work", headers=ASYNC)
        location = made.headers["location"]
        await reported.wait()
        while "statusMessage" not in (shown := await client.get(location)).json():
            await asyncio.sleep(0)
        early = await client.get(location + "/result")
        await client.delete(location)
        return shown, early

    shown, early = run(app, steps)
    assert shown.json()["statusMessage"] == "3 of 10: reading"
    assert shown.headers["retry-after"] == "1"
    assert (early.status_code, early.json()["status"]) == (202, "working")


def test_a_deleted_task_is_cancelled_and_a_second_time_stays_so(app: App) -> None:
    @app.tool(task="optional")
    async def work() -> None:
        await asyncio.Event().wait()

    async def steps(client: httpx.AsyncClient) -> Any:
        location = (await client.post("/functions/work", headers=ASYNC)).headers["location"]
        first, second = await client.delete(location), await client.delete(location)
        return first, second, await client.get(location + "/result")

    first, second, result = run(app, steps)
    assert [first.json()["status"], second.json()["status"]] == ["cancelled", "cancelled"]
    assert [first.status_code, second.status_code] == [200, 200]
    assert (result.status_code, result.headers["x-error-code"]) == (409, "CANCELLED")


def test_questions_are_shown_and_answered_at_the_task(app: App) -> None:
    @app.tool(task="optional")
    async def rename(number: Annotated[int, Ask("Which number?")], ctx: Context) -> str:
        return f"{number} is " + await ctx.elicit("Which name?", str)

    async def steps(client: httpx.AsyncClient) -> Any:
        location = (await client.post("/functions/rename", headers=ASYNC)).headers["location"]
        asked = []
        for answer in (7, "Ada"):
            task = (await client.get(location, headers=WAIT)).json()
            ((key, question),) = task["inputRequests"].items()
            asked.append(question["params"]["message"])
            (field,) = question["params"]["requestedSchema"]["properties"]
            body = {"inputResponses": {key: {"action": "accept", "content": {field: answer}}}}
            wrong = await client.post(location, json={"inputResponses": {"nothing": {}}})
            assert wrong.status_code == 409
            assert (await client.post(location, json=body)).status_code == 200
        return asked, await client.get(location + "/result", headers=WAIT)

    asked, result = run(app, steps)
    assert asked == ["Which number?", "Which name?"]
    assert result.json() == {"result": "7 is Ada"}


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"inputResponses": 1}', b"\xff"])
def test_malformed_answers_are_refused(body: bytes) -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="work", task="required")

    async def steps(client: httpx.AsyncClient) -> Any:
        location = (await client.post("/functions/work")).headers["location"]
        return await client.post(location, content=body)

    assert run(app, steps).status_code == 400


def _token(name: str) -> dict[str, str]:
    return {"Authorization": "Bearer " + f"secret-key-of-{name}-".ljust(43, "x")}


def test_the_task_of_another_user_is_not_found(app: App) -> None:
    secrets = {name: _token(name)["Authorization"][7:] for name in ("ada", "eve")}
    registry_of(app).auth = ApiKeys(
        {sha256(each.encode()).hexdigest(): name for name, each in secrets.items()}
    )
    app.add_tool(lambda: 1, name="work", task="required", requires=[login()])

    async def steps(client: httpx.AsyncClient) -> Any:
        made = await client.post("/functions/work", headers=_token("ada"))
        location = made.headers["location"]
        foreign = [
            await client.request(method, location + path, headers=_token("eve"), json={})
            for method, path in [("GET", ""), ("GET", "/result"), ("DELETE", ""), ("POST", "")]
        ]
        own = await client.get(location + "/result", headers=_token("ada") | WAIT)
        return foreign, own, await client.get(location)

    foreign, own, anonymous = run(app, steps)
    assert [each.status_code for each in foreign] == [404, 404, 404, 404]
    assert (own.status_code, own.json()) == (200, {"result": 1})
    assert anonymous.status_code == 401


@pytest.mark.parametrize("path", ["work/tasks/x", "other/tasks/{id}", "work/tasks/{id}/more"])
def test_another_path_than_that_of_the_task_is_not_found(path: str) -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="work", task="required")
    app.add_tool(lambda: 1, name="other", task="required")

    async def steps(client: httpx.AsyncClient) -> Any:
        id = (await client.post("/functions/work")).json()["taskId"]
        return await client.get("/functions/" + path.format(id=id))

    assert run(app, steps).status_code == 404


def test_other_methods_are_refused_with_those_that_are_allowed() -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="work", task="required")

    async def steps(client: httpx.AsyncClient) -> Any:
        location = (await client.post("/functions/work")).headers["location"]
        return await client.put(location), await client.delete(location + "/result")

    put, delete = run(app, steps)
    assert (put.status_code, put.headers["allow"]) == (405, "GET, HEAD, POST, DELETE")
    assert (delete.status_code, delete.headers["allow"]) == (405, "GET, HEAD")


def test_tasks_work_where_tools_are_at_the_root_of_a_mounted_app() -> None:
    app = App("jobs", contract=DIRECT)
    app.add_tool(lambda: 1, name="tasks", task="required")

    async def steps(client: httpx.AsyncClient) -> Any:
        client._transport = httpx.ASGITransport(app.asgi(), root_path="/api")
        made = await client.post("/api/tasks")
        return made, await client.get(made.headers["location"], headers=WAIT)

    made, done = run(app, steps)
    assert made.headers["location"].startswith("/api/tasks/tasks/")
    assert done.json()["status"] == "completed"


def test_a_lost_202_does_not_double_the_work(app: App) -> None:
    ran: list[int] = []

    @app.tool(task="optional")
    def pay(amount: int) -> None:
        ran.append(amount)

    async def steps(client: httpx.AsyncClient) -> Any:
        async def pay(amount: int, key: str) -> httpx.Response:
            headers = {**ASYNC, "Idempotency-Key": key}
            return await client.post("/functions/pay", json={"amount": amount}, headers=headers)

        first, again = await pay(5, '"k-1"'), await pay(5, "k-1")
        other = await pay(6, "k-1")
        await client.get(first.headers["location"], headers=WAIT)
        return first, again, other

    first, again, other = run(app, steps)
    assert first.headers["location"] == again.headers["location"]
    assert (other.status_code, other.headers["x-error-code"]) == (422, "KEY_REUSED")
    assert ran == [5]


def test_a_plain_call_with_a_key_runs_once_and_is_answered_alike(app: App) -> None:
    ran: list[str | None] = []

    @app.tool(task=Task(key=True))
    def pay(amount: int, ctx: Context) -> dict[str, int]:
        headers = ctx.request.headers
        ran.append(None if headers is None else headers.get("idempotency-key"))
        return {"paid": amount}

    async def steps(client: httpx.AsyncClient) -> Any:
        async def pay(amount: int, **headers: str) -> httpx.Response:
            return await client.post("/functions/pay", json={"amount": amount}, headers=headers)

        keyed = {"Idempotency-Key": "k-1"}
        replies = [await pay(5, **keyed), await pay(5, **keyed), await pay(6, **keyed)]
        return replies, await pay(5)

    (first, again, other), plain = run(app, steps)
    assert (first.status_code, first.json()) == (200, {"paid": 5})
    assert (again.status_code, again.content) == (200, first.content)
    assert (other.status_code, other.headers["x-error-code"]) == (422, "KEY_REUSED")
    assert plain.json() == {"paid": 5}
    assert ran == ["k-1", None]


def test_a_call_with_the_key_of_one_that_runs_is_refused_for_the_moment(app: App) -> None:
    started, free = asyncio.Event(), asyncio.Event()

    @app.tool(task=Task(key=True))
    async def pay() -> str:
        started.set()
        await free.wait()
        return "paid"

    async def steps(client: httpx.AsyncClient) -> Any:
        keyed = {"Idempotency-Key": "k-1"}
        first = asyncio.create_task(client.post("/functions/pay", headers=keyed))
        await started.wait()
        early = await client.post("/functions/pay", headers=keyed)
        free.set()
        return early, await first, await client.post("/functions/pay", headers=keyed)

    early, first, again = run(app, steps)
    assert (early.status_code, early.headers["retry-after"]) == (409, "1")
    assert first.json() == again.json() == {"result": "paid"}


def test_a_key_may_be_used_again_after_a_call_that_was_refused_for_the_moment(app: App) -> None:
    ran: list[int] = []

    @app.tool(task=Task(key=True))
    def pay(amount: int) -> str:
        ran.append(amount)
        if len(ran) == 1:
            raise Unavailable("the bank is closed")
        return "paid"

    async def steps(client: httpx.AsyncClient) -> list[int]:
        statuses = []
        for amount in ("five", 5, 5, 5):
            keyed = {"Idempotency-Key": "k-1"}
            body = {"amount": amount}
            response = await client.post("/functions/pay", json=body, headers=keyed)
            statuses.append(response.status_code)
        return statuses

    assert run(app, steps) == [400, 503, 200, 200]
    assert ran == [5, 5]


@pytest.mark.parametrize("key", ["", "a\tb", "a\x7fb", "a b", "é", "k" * 256])
@pytest.mark.parametrize("name", ["plain", "work"])
def test_a_malformed_key_is_refused_before_the_tool_runs(key: str, name: str) -> None:
    ran: list[int] = []
    app = App("jobs")
    app.add_tool(lambda: ran.append(1), name="plain", task=Task(key=True))
    app.add_tool(lambda: ran.append(1), name="work", task="required")
    headers = {b"Idempotency-Key": key.encode("latin-1")}

    response = run(app, lambda client: client.post(f"/functions/{name}", headers=headers))

    assert response.status_code == 400
    assert ran == []


def test_keys_of_two_users_are_two_keys(app: App) -> None:
    secrets = {name: _token(name)["Authorization"][7:] for name in ("ada", "eve")}
    registry_of(app).auth = ApiKeys(
        {sha256(each.encode()).hexdigest(): name for name, each in secrets.items()}
    )

    @app.tool(task=Task(key=True))
    def pay(ctx: Context) -> str:
        return str(ctx.user.subject)

    async def steps(client: httpx.AsyncClient) -> list[Any]:
        return [
            (
                await client.post(
                    "/functions/pay", headers={"Idempotency-Key": "k-1", **_token(name)}
                )
            ).json()["result"]
            for name in ("ada", "eve")
        ]

    assert run(app, steps) == ["ada", "eve"]


def test_a_plain_mcp_call_with_a_key_in_its_meta_runs_once(app: App) -> None:
    ran: list[int] = []

    @app.tool(task=Task(key=True))
    def pay(amount: int) -> None:
        ran.append(amount)

    async def steps(client: TaskClient) -> Any:
        meta = {"answerback/idempotencyKey": "k-1"}
        calls = [
            await client.request("tools/call", meta, name="pay", arguments={"amount": amount})
            for amount in (5, 5, 6)
        ]
        return calls

    first, again, other = run_with(app, steps)
    assert first == again
    assert other["_meta"]["answerback/error"]["code"] == "KEY_REUSED"
    assert ran == [5]


def test_full_limits_are_refused_with_the_seconds_to_wait() -> None:
    app = App("jobs", limits=Limits(shutdown=0.1))
    registry_of(app).limits = Limits(shutdown=0.1, tasks=TaskLimits(slots=1, queue=1))

    @app.tool(task="required")
    async def work() -> None:
        await asyncio.Event().wait()

    async def steps(client: httpx.AsyncClient) -> Any:
        return [await client.post("/functions/work") for _ in range(3)]

    responses = run(app, steps)
    assert [each.status_code for each in responses] == [202, 202, 503]
    assert responses[2].headers["retry-after"] == "5"


def test_a_user_with_too_many_tasks_is_refused_with_429_and_others_are_not(app: App) -> None:
    secrets = {name: _token(name)["Authorization"][7:] for name in ("ada", "eve")}
    registry_of(app).auth = ApiKeys(
        {sha256(each.encode()).hexdigest(): name for name, each in secrets.items()}
    )
    registry_of(app).limits = Limits(shutdown=0.1, tasks=TaskLimits(per_owner=1))

    @app.tool(task="required")
    async def work() -> None:
        await asyncio.Event().wait()

    async def steps(client: httpx.AsyncClient) -> Any:
        users = ("ada", "ada", "eve")
        return [await client.post("/functions/work", headers=_token(user)) for user in users]

    responses = run(app, steps)
    assert [each.status_code for each in responses] == [202, 429, 202]
    assert responses[1].headers["retry-after"] == "5"


def test_answers_above_the_limit_are_refused_and_the_task_waits_on(app: App) -> None:
    registry_of(app).limits = Limits(shutdown=0.1, tasks=TaskLimits(answer_bytes=1000))

    @app.tool(task="required")
    async def rename(ctx: Context) -> str:
        return await ctx.elicit("Which name?", str)

    async def steps(client: httpx.AsyncClient) -> Any:
        location = (await client.post("/functions/rename")).headers["location"]
        task = (await client.get(location, headers=WAIT)).json()
        (key,) = task["inputRequests"]
        answer = {"action": "accept", "content": {"value": "x" * 1000}}
        refused = await client.post(location, json={"inputResponses": {key: answer}})
        return refused, await client.get(location)

    refused, task = run(app, steps)
    assert (refused.status_code, refused.headers["x-error-code"]) == (413, "TOO_LARGE")
    assert task.json()["status"] == "input_required"


def test_many_keys_and_large_replies_do_not_fill_the_store(app: App) -> None:
    registry_of(app).limits = Limits(tasks=TaskLimits(total_bytes=400_000, result_bytes=50_000))

    @app.tool(task=Task(key=True))
    def fill(size: int) -> str:
        return "x" * size

    async def steps(client: httpx.AsyncClient) -> Any:
        async def call(key: str, size: int) -> httpx.Response:
            headers = {"Idempotency-Key": key}
            return await client.post("/functions/fill", json={"size": size}, headers=headers)

        large = [await call("large", 60_000), await call("large", 60_000)]
        return large, [await call(f"k-{number}", 40_000) for number in range(12)]

    (first, again), many = run(app, steps)
    statuses = [each.status_code for each in many]
    assert (first.status_code, again.headers["x-error-code"]) == (200, "TOO_LARGE")
    assert statuses[0] == 200
    assert statuses[-1] == 503
    assert many[-1].headers["retry-after"] == "5"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("slots", 0),
        ("queue", -1),
        ("per_owner", True),
        ("result_bytes", 1.5),
        ("total_bytes", "1 GB"),
        ("retention", float("nan")),
        ("retention", float("inf")),
        ("max_retention", 60),
    ],
)
def test_limits_that_make_no_sense_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        TaskLimits(**{name: value})


def test_the_rules_for_hosts_and_origins_hold_for_tasks() -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="work", task="required")

    async def steps(client: httpx.AsyncClient) -> Any:
        client._transport = httpx.ASGITransport(app.asgi(origins=["https://ui.example"]))
        made = await client.post("/functions/work", headers={"Origin": "https://ui.example"})
        location = made.headers["location"]
        foreign = [
            await client.delete(location, headers={"Host": "evil.example"}),
            await client.delete(location, headers={"Origin": "https://evil.example"}),
        ]
        return made, foreign

    made, foreign = run(app, steps)
    exposed = made.headers["access-control-expose-headers"]
    assert {"Location", "Retry-After", "Preference-Applied"} <= set(exposed.split(", "))
    assert [each.status_code for each in foreign] == [421, 403]


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/work", {}, 503),
        ("/pay", {"HTTP_IDEMPOTENCY_KEY": "k-1"}, 503),
        ("/pay", {}, 200),
        ("/either", {"HTTP_PREFER": "respond-async"}, 200),
        ("/work/tasks/abc", {}, 404),
    ],
)
def test_cgi_refuses_what_would_outlive_its_process(
    path: str, headers: dict[str, str], status: int
) -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="work", task="required")
    app.add_tool(lambda: 1, name="either", task="optional")
    app.add_tool(lambda: 1, name="pay", task=Task(key=True))
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, **headers}

    written = cgi.answer(registry_of(app), environ, cgi.RequestBody(environ, -1))

    assert written.status == status


CRASHING = """
import os, pathlib, signal

from answerback import App
from answerback.options import Task

app = App("jobs")


@app.tool(task=Task(key=True))
def pay() -> None:
    with open("ran.txt", "a") as file:
        file.write("x")
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    os.chdir(pathlib.Path(__file__).parent)
    app.run()
"""


def test_a_keyed_call_whose_server_was_killed_is_not_made_again(
    tmp_path: Path, serve: Callable[..., Any]
) -> None:
    file = tmp_path / "jobs.py"
    file.write_text(CRASHING)
    flags, keyed = ("--tasks", str(tmp_path / "tasks.db")), {"Idempotency-Key": "k-1"}

    with serve(file, *flags) as server, pytest.raises(httpx.HTTPError):
        httpx.post(f"{server.url}/functions/pay", headers=keyed)
    with serve(file, *flags) as server:
        for _ in range(200):
            again = httpx.post(f"{server.url}/functions/pay", headers=keyed)
            if again.status_code != 409:
                break

    assert again.headers["x-error-code"] == "WORKER_LOST"
    assert (tmp_path / "ran.txt").read_text() == "x"


def test_the_arguments_and_the_user_of_a_plain_call_are_not_kept(tmp_path: Path) -> None:
    app = ServedApp("jobs")
    app.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False)

    @app.tool(task=Task(key=True))
    def pay(card: str) -> str:
        return "paid"

    async def steps(client: httpx.AsyncClient) -> httpx.Response:
        headers = {"Idempotency-Key": "k-1"}
        return await client.post("/functions/pay", json={"card": "4111111111"}, headers=headers)

    response = run(app, steps)
    files = b"".join(each.read_bytes() for each in tmp_path.iterdir())
    assert response.status_code == 200
    assert b"k-1" in files
    assert b"4111111111" not in files


@pytest.mark.parametrize("per", ["all", "address", "user", "client"])
def test_a_task_above_a_limit_is_refused_with_429_when_it_is_created(app: App, per: Any) -> None:
    app.add_tool(lambda: "done", name="work", task="required", limit=Limit("2/h", per=per))

    async def steps(client: httpx.AsyncClient) -> Any:
        made = [await client.post("/functions/work") for _ in range(3)]
        done = [await client.get(each.headers["location"], headers=WAIT) for each in made[:2]]
        return made, [await client.get(each.json()["resultUrl"]) for each in done]

    made, results = run(app, steps)
    assert [each.status_code for each in made] == [202, 202, 429]
    assert made[2].headers["x-error-code"] == "RATE_LIMITED"
    assert int(made[2].headers["retry-after"]) > 0
    assert [each.json() for each in results] == [{"result": "done"}] * 2


def test_a_task_is_counted_by_the_header_of_its_request(app: App) -> None:
    limit = Limit("1/h", concurrent=1, per=lambda ctx: ctx.request.headers.get("x-team"))
    app.add_tool(lambda: "done", name="work", task="required", limit=limit)

    async def steps(client: httpx.AsyncClient) -> Any:
        teams = [{"X-Team": team} for team in ("red", "red", "blue")]
        made = [await client.post("/functions/work", headers=team) for team in teams]
        done = await client.get(made[0].headers["location"], headers=WAIT)
        return made, await client.get(done.json()["resultUrl"])

    made, result = run(app, steps)
    assert [each.status_code for each in made] == [202, 429, 202]
    assert result.json() == {"result": "done"}


def test_a_repeated_creation_does_not_count_toward_a_limit(app: App) -> None:
    app.add_tool(lambda: "done", name="work", task="required", limit=Limit("3/h", per="address"))

    async def steps(client: httpx.AsyncClient) -> Any:
        keys = [{"Idempotency-Key": key} for key in ("a", "a", "a", "b", "c")]
        return [await client.post("/functions/work", headers=key) for key in keys]

    made = run(app, steps)
    assert [each.status_code for each in made] == [202] * 5
