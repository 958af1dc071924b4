"""Calls that run as tasks: the same reply, questions, progress, cancellation, and owners."""

from __future__ import annotations

import asyncio
import threading
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.fuzz.stdio_client import request, stdio_client
from tests.protocol.official_tools import CONFORMANCE
from tests.serving import ServedApp
from tests.tasks.task_client import DECLARED, PREFIX, RpcFailure, TaskClient, run_with

from answerback import App, Ask, Context, Limits, NotFound, Reply, success
from answerback.auth import ApiKeys
from answerback.gates import login
from answerback.options import Task, TaskLimits
from answerback.records import Records
from answerback.registry.declarations import registry_of
from answerback.resilience import Limit
from answerback.tasks.sqlite_store import SQLiteStore


@pytest.fixture(params=["memory", "sqlite"])
def app(request: pytest.FixtureRequest, tmp_path: Path) -> App:
    made = ServedApp("jobs", limits=Limits(shutdown=1))
    if request.param == "sqlite":
        made.task_store = SQLiteStore(tmp_path / "tasks.db", durable=False)
    return made


def _key(name: str) -> str:
    return f"secret-key-of-{name}-".ljust(43, "x")


def _keys(*names: str, anonymous: bool = False) -> ApiKeys:
    keys = {sha256(_key(name).encode()).hexdigest(): name for name in names}
    return ApiKeys(keys, anonymous=anonymous)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_task_has_the_result_that_the_plain_call_has(app: App, is_async: bool) -> None:
    def square(x: int) -> dict[str, int]:
        return {"square": x * x}

    async def square_async(x: int) -> dict[str, int]:
        return square(x)

    app.add_tool(square_async if is_async else square, name="square", task="optional")

    async def steps(client: TaskClient) -> Any:
        task = await client.until(await client.create("square", x=7))
        client.capabilities = {}
        return task, await client.call("square", x=7)

    task, plain = run_with(app, steps)
    assert task["status"] == "completed"
    assert task["result"] == plain
    assert plain["structuredContent"] == {"square": 49}


def test_the_message_of_a_task_is_added_when_its_result_is_sent(app: App) -> None:
    @app.tool(task=Task("optional", key=True))
    def square(x: int) -> Reply[int]:
        return success("Easy.", x * x)

    async def steps(client: TaskClient) -> Any:
        id = await client.create("square", x=7)
        task = await client.until(id)
        over_rest = await client.get_json(f"/functions/square/tasks/{id}/result")
        client.capabilities = {}
        key = {"answerback/idempotencyKey": "one"}
        plain = [
            await client.request("tools/call", key, name="square", arguments={"x": 7})
            for _ in range(2)
        ]
        return task, over_rest, *plain

    task, over_rest, plain, repeated = run_with(app, steps)
    assert plain["structuredContent"] == {"result": 49, "message": "Easy."}
    assert task["result"] == plain == repeated
    assert over_rest == {"result": 49}


def test_an_error_of_the_tool_is_a_completed_task(app: App) -> None:
    @app.tool(task="required")
    def find() -> str:
        raise NotFound("no such order")

    task = run_with(app, lambda client: _run(client, "find"))

    assert task["status"] == "completed"
    assert task["result"]["isError"] is True
    assert task["statusMessage"] == "no such order"


async def _run(client: TaskClient, name: str, **arguments: Any) -> Any:
    return await client.until(await client.create(name, **arguments))


def test_bad_arguments_are_refused_at_the_creation(app: App) -> None:
    @app.tool(task="required")
    def add(x: int) -> int:
        return x

    result = run_with(app, lambda client: client.call("add", x="seven"))

    assert result["resultType"] == "complete"
    assert result["isError"] is True


def test_a_client_that_did_not_declare_tasks_waits_or_is_refused(app: App) -> None:
    app.add_tool(lambda: 1, name="either", task="optional")
    app.add_tool(lambda: 1, name="only", task="required")

    async def steps(client: TaskClient) -> Any:
        client.capabilities = {}
        with pytest.raises(RpcFailure) as refused:
            await client.call("only")
        return await client.call("either"), refused.value

    result, refused = run_with(app, steps)
    assert result["resultType"] == "complete"
    assert refused.code == -32021
    assert "io.modelcontextprotocol/tasks" in refused.data["requiredCapabilities"]["extensions"]


def test_a_question_inside_a_task_frees_its_slot_and_is_answered_later(app: App) -> None:
    registry_of(app).limits = Limits(tasks=TaskLimits(slots=1))

    @app.tool(task="optional")
    async def rename(ctx: Context) -> str:
        return "named " + await ctx.elicit("Which name?", str)

    @app.tool(task="optional")
    def quick() -> str:
        return "quick"

    async def steps(client: TaskClient) -> Any:
        asking = await client.create("rename")
        waiting = await client.until(asking, "input_required")
        other = await _run(client, "quick")
        [key] = waiting["inputRequests"]
        answer = {"action": "accept", "content": {"value": "Ada"}}
        await client.request("tasks/update", taskId=asking, inputResponses={key: answer})
        return waiting, other, await client.until(asking)

    waiting, other, done = run_with(app, steps)
    [question] = waiting["inputRequests"].values()
    assert question["method"] == "elicitation/create"
    assert question["params"]["message"] == "Which name?"
    assert other["status"] == "completed"
    assert done["result"]["content"][0]["text"] == "named Ada"
    assert "inputRequests" not in done


def test_a_task_that_asks_a_client_which_cannot_answer_ends_with_an_error(app: App) -> None:
    @app.tool(task="optional")
    async def rename(ctx: Context) -> str:
        return await ctx.elicit("Which name?", str)

    async def steps(client: TaskClient) -> Any:
        client.capabilities = {"extensions": client.capabilities["extensions"]}
        return await _run(client, "rename")

    task = run_with(app, steps)
    assert task["result"]["isError"] is True
    assert task["result"]["_meta"]["answerback/error"]["code"] == "INPUT_REQUIRED"


def test_questions_of_ask_parameters_come_before_the_task(app: App) -> None:
    @app.tool(task="required")
    def delete(sure: Annotated[bool, Ask("Delete all?")]) -> str:
        return f"sure: {sure}"

    async def steps(client: TaskClient) -> Any:
        first = await client.call("delete")
        second = await client.request(
            "tools/call",
            name="delete",
            arguments={},
            requestState=first["requestState"],
            inputResponses={"sure": {"action": "accept", "content": {"sure": True}}},
        )
        return first, await client.until(second["taskId"])

    first, done = run_with(app, steps)
    assert first["resultType"] == "input_required"
    assert done["result"]["content"][0]["text"] == "sure: True"


def test_progress_becomes_the_message_of_the_task(app: App) -> None:
    seen = threading.Event()

    @app.tool(task="optional")
    def load(ctx: Context) -> str:
        ctx.progress(3, 10, "reading")
        seen.wait(60)
        return "loaded"

    async def steps(client: TaskClient) -> Any:
        id = await client.create("load")
        async with asyncio.timeout(60):
            while "statusMessage" not in (task := await client.get(id)):
                await asyncio.sleep(0.005)
        seen.set()
        return task, await client.until(id)

    task, done = run_with(app, steps)
    assert task["statusMessage"] == "3 of 10: reading"
    assert task["status"] == "working"
    assert done["status"] == "completed"


def test_a_cancelled_async_task_ends_at_once(app: App) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    @app.tool(task="optional")
    async def sleep() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def steps(client: TaskClient) -> Any:
        id = await client.create("sleep")
        await begun.wait()
        acknowledged = await client.request("tasks/cancel", taskId=id)
        await ended.wait()
        return acknowledged, await client.get(id)

    acknowledged, task = run_with(app, steps)
    assert acknowledged["resultType"] == "complete"
    assert "taskId" not in acknowledged
    assert task["status"] == "cancelled"


def test_a_plain_function_goes_on_after_the_cancellation_and_is_not_heard(app: App) -> None:
    started, go_on, went_on = threading.Event(), threading.Event(), threading.Event()

    @app.tool(task="optional")
    def work(ctx: Context) -> str:
        started.set()
        go_on.wait(60)
        if ctx.cancelled:
            went_on.set()
        return "late"

    async def steps(client: TaskClient) -> Any:
        id = await client.create("work")
        await asyncio.to_thread(started.wait, 60)
        await client.request("tasks/cancel", taskId=id)
        go_on.set()
        await asyncio.to_thread(went_on.wait, 60)
        return await client.get(id)

    task = run_with(app, steps)
    assert went_on.is_set()
    assert task["status"] == "cancelled"
    assert "result" not in task


def test_more_tasks_than_slots_wait_and_all_end(app: App) -> None:
    registry_of(app).limits = Limits(tasks=TaskLimits(slots=3))
    at_a_time: list[int] = []
    running = [0]

    @app.tool(task="optional")
    async def step(n: int) -> int:
        running[0] += 1
        at_a_time.append(running[0])
        await asyncio.sleep(0)
        running[0] -= 1
        return n

    async def steps(client: TaskClient) -> Any:
        ids = [await client.create("step", n=n) for n in range(40)]
        return [await client.until(id) for id in ids]

    tasks = run_with(app, steps)
    assert [task["result"]["structuredContent"]["result"] for task in tasks] == list(range(40))
    assert max(at_a_time) <= 3


def test_a_task_belongs_to_the_user_who_made_it(app: App) -> None:
    registry_of(app).auth = _keys("ann", "bob")
    seen: list[Any] = []

    @app.tool(task="optional", requires=[login()])
    def mine(ctx: Context) -> str:
        seen.append((ctx.request, ctx.user))
        return str(ctx.user.subject)

    async def steps(client: TaskClient) -> Any:
        ann, bob = client.of(_key("ann")), client.of(_key("bob"))
        id = await ann.create("mine")
        done = await ann.until(id)
        refusals = []
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            with pytest.raises(RpcFailure) as refused:
                await bob.request(method, taskId=id)
            refusals.append(refused.value.code)
        return done, refusals

    done, refusals = run_with(app, steps)
    assert done["result"]["content"][0]["text"] == "ann"
    assert refusals == [-32602] * 3
    assert [(request, user.subject) for request, user in seen] == [(None, "ann")]


def test_no_token_and_no_header_is_in_the_file(tmp_path: Path) -> None:
    app = ServedApp("jobs", auth=_keys("ann"))
    app.task_store = SQLiteStore(tmp_path / "tasks.db")
    app.add_tool(lambda: 1, name="one", task="optional")

    run_with(app, lambda client: _run(client.of(_key("ann")), "one"))

    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"ann" in written
    assert _key("ann").encode() not in written
    assert b"Bearer" not in written


def test_a_task_is_created_once_for_each_idempotency_key(app: App) -> None:
    ran: list[int] = []

    @app.tool(task="optional")
    def pay(amount: int) -> int:
        ran.append(amount)
        return amount

    async def steps(client: TaskClient) -> Any:
        async def pay(amount: int, key: str) -> Any:
            meta = {"answerback/idempotencyKey": key}
            return await client.request(
                "tools/call", meta, name="pay", arguments={"amount": amount}
            )

        first, again = await pay(5, "a"), await pay(5, "a")
        other = await pay(5, "b")
        conflict = await pay(6, "a")
        await client.until(first["taskId"])
        await client.until(other["taskId"])
        return first, again, other, conflict

    first, again, other, conflict = run_with(app, steps)
    assert first["taskId"] == again["taskId"] != other["taskId"]
    assert conflict["isError"] is True
    assert conflict["_meta"]["answerback/error"]["code"] == "KEY_REUSED"
    assert ran == [5, 5]


def test_a_result_above_the_limit_becomes_an_error(app: App) -> None:
    registry_of(app).limits = Limits(tasks=TaskLimits(result_bytes=1000))
    app.add_tool(lambda: "x" * 2000, name="large", task="optional")

    task = run_with(app, lambda client: _run(client, "large"))

    assert task["result"]["isError"] is True
    assert task["result"]["_meta"]["answerback/error"]["code"] == "TOO_LARGE"


def test_the_limits_of_tasks_are_an_option_of_the_app() -> None:
    app = App("jobs", limits=Limits(tasks=TaskLimits(result_bytes=1000)))
    app.add_tool(lambda: "x" * 2000, name="large", task="required")

    done = run_with(app, lambda client: _run(client, "large"))

    assert "more than 1000" in done["statusMessage"]


def test_a_full_queue_refuses_further_tasks(app: App) -> None:
    registry_of(app).limits = Limits(tasks=TaskLimits(slots=1, queue=1))

    @app.tool(task="optional")
    async def sleep() -> None:
        await asyncio.Event().wait()

    async def steps(client: TaskClient) -> Any:
        ids = [await client.create("sleep"), await client.create("sleep")]
        refused = await client.call("sleep")
        for id in ids:
            await client.request("tasks/cancel", taskId=id)
        return refused

    refused = run_with(app, steps)
    assert refused["isError"] is True
    assert refused["_meta"]["answerback/error"]["code"] == "UNAVAILABLE"


def test_the_run_and_the_refusal_of_a_task_are_recorded_as_calls_are(app: App) -> None:
    kept: list[Any] = []

    class Kept(Records):
        def add(self, record: Any) -> None:
            kept.append((record.name, record.wire, record.version, record.code))

    registry_of(app).records = Kept(_NoSink())

    @app.tool(task="required")
    def add(x: int) -> int:
        return x

    async def steps(client: TaskClient) -> None:
        await client.call("add", x="seven")
        await _run(client, "add", x=7)

    run_with(app, steps)
    assert kept == [
        ("add", "mcp", "2026-07-28", "INVALID_ARGUMENTS"),
        ("add", "mcp", "2026-07-28", ""),
    ]


class _NoSink:
    def open(self) -> Any:
        raise OSError("nothing is written")


def test_a_client_of_2025_11_25_asks_for_a_task_and_waits_for_its_result(app: App) -> None:
    app.add_tool(lambda: "done", name="job", task="optional")
    app.add_tool(lambda: "never", name="plain")
    app.add_tool(lambda: "only", name="only", task="required")

    async def steps(client: TaskClient) -> Any:
        listed = await client.old_request("tools/list")
        made = await client.old_request("tools/call", name="job", arguments={}, task={"ttl": 9000})
        id = made["task"]["taskId"]
        result = await client.old_request("tasks/result", taskId=id)
        shown = await client.old_request("tasks/get", taskId=id)
        codes = []
        for method, params in (
            ("tools/call", {"name": "plain", "arguments": {}, "task": {}}),
            ("tools/call", {"name": "only", "arguments": {}}),
            ("tasks/list", {}),
            ("tasks/update", {"taskId": id}),
            ("tasks/cancel", {"taskId": id}),
            ("tasks/get", {"taskId": "other"}),
        ):
            with pytest.raises(RpcFailure) as refused:
                await client.old_request(method, **params)
            codes.append(refused.value.code)
        return listed, made["task"], result, shown, codes

    listed, task, result, shown, codes = run_with(app, steps)
    support = {tool["name"]: tool.get("execution") for tool in listed["tools"]}
    assert support == {
        "job": {"taskSupport": "optional"},
        "plain": None,
        "only": {"taskSupport": "required"},
    }
    assert task["ttl"] == 9000
    assert result["content"][0]["text"] == "done"
    assert result["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": task["taskId"]}
    assert shown["status"] == "completed"
    assert codes == [-32601, -32601, -32601, -32601, -32602, -32602]


@pytest.mark.parametrize(
    ("ttl", "kept"),
    [(0, 1000), (-5, 1000), (10**400, 604_800_000), ("x", 3_600_000)],
    ids=["zero", "negative", "huge", "text"],
)
def test_any_ttl_of_a_client_is_brought_within_the_limits(ttl: Any, kept: int) -> None:
    app = App("jobs")
    app.add_tool(lambda: 1, name="one", task="required")

    made = run_with(
        app, lambda client: client.old_request("tools/call", name="one", task={"ttl": ttl})
    )

    assert made["task"]["ttl"] == kept


def test_a_client_that_cannot_be_asked_waits_until_another_one_has_answered(app: App) -> None:
    @app.tool(task="optional")
    async def rename(ctx: Context) -> str:
        return "named " + await ctx.elicit("Which name?", str)

    async def steps(client: TaskClient) -> Any:
        id = await client.create("rename")
        [key] = (await client.until(id, "input_required"))["inputRequests"]
        waiting = asyncio.create_task(client.old_request("tasks/result", taskId=id))
        await asyncio.sleep(0)
        answers = {key: {"action": "accept", "content": {"value": "Ada"}}}
        await client.request("tasks/update", taskId=id, inputResponses=answers)
        return await waiting

    assert run_with(app, steps)["content"][0]["text"] == "named Ada"


def test_a_client_of_an_earlier_version_waits_or_is_refused(app: App) -> None:
    app.add_tool(lambda: "done", name="job", task="optional")
    app.add_tool(lambda: "only", name="only", task="required")

    async def steps(client: TaskClient) -> Any:
        with pytest.raises(RpcFailure) as refused:
            await client.old_request("tools/call", "2025-06-18", name="only", arguments={})
        job = {"name": "job", "arguments": {}, "task": {}}
        return await client.old_request("tools/call", "2025-06-18", **job), refused.value.code

    result, code = run_with(app, steps)
    assert result["content"][0]["text"] == "done"
    assert code == -32601


def test_with_auth_a_client_of_2025_11_25_lists_its_own_tasks(app: App) -> None:
    registry_of(app).auth = _keys("ann", "bob")
    app.add_tool(lambda: "done", name="job", task="optional")

    async def steps(client: TaskClient) -> Any:
        ann, bob = client.of(_key("ann")), client.of(_key("bob"))
        id = await ann.create("job")
        await ann.until(id)
        mine = await ann.old_request("tasks/list")
        return id, mine, await bob.old_request("tasks/list")

    id, mine, other = run_with(app, steps)
    assert [task["taskId"] for task in mine["tasks"]] == [id]
    assert other["tasks"] == []


def test_the_tasks_of_anonymous_clients_are_not_listed(app: App) -> None:
    registry_of(app).auth = _keys("ann", anonymous=True)
    app.add_tool(lambda: "done", name="job", task="optional")

    async def steps(client: TaskClient) -> Any:
        ann = client.of(_key("ann"))
        made, mine = await client.create("job"), await ann.create("job")
        with pytest.raises(RpcFailure) as listing:
            await client.old_request("tasks/list")
        with pytest.raises(RpcFailure) as paging:
            await client.old_request("tasks/list", cursor=made)
        listed = await ann.old_request("tasks/list")
        shown = await client.old_request("tasks/get", taskId=made)
        return listing.value, paging.value, (listed, mine), (shown, made)

    listing, paging, (listed, mine), (shown, made) = run_with(app, steps)
    assert (listing.code, str(listing)) == (-32601, "Method not found: tasks/list")
    assert (paging.code, str(paging)) == (-32601, "Method not found: tasks/list")
    assert [task["taskId"] for task in listed["tasks"]] == [mine]
    assert shown["taskId"] == made


def test_the_list_of_tasks_is_announced_to_a_client_with_a_user(app: App) -> None:
    registry_of(app).auth = _keys("ann", anonymous=True)
    app.add_tool(lambda: "done", name="job", task="optional")
    opening: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a"},
    }

    async def steps(client: TaskClient) -> Any:
        clients = client.of(_key("ann")), client
        return [await each.old_request("initialize", **opening) for each in clients]

    ann, anonymous = run_with(app, steps)
    assert "list" in ann["capabilities"]["tasks"]
    assert "list" not in anonymous["capabilities"]["tasks"]


def test_gates_and_limits_count_a_task_once(app: App) -> None:
    passed: list[str] = []

    def note(ctx: Context) -> None:
        passed.append(ctx.tool)

    @app.tool(task="optional", requires=[note], limit=Limit("2/h"))
    def job() -> str:
        return "done"

    async def steps(client: TaskClient) -> Any:
        return [await _run(client, "job") for _ in range(2)], await client.call("job")

    tasks, refused = run_with(app, steps)
    assert [task["result"]["isError"] for task in tasks] == [False, False]
    assert refused["_meta"]["answerback/error"]["code"] == "RATE_LIMITED"
    assert passed == ["job"] * 3


def test_a_task_on_stdio_asks_the_client_that_waits_for_its_result() -> None:
    with stdio_client(CONFORMANCE) as client:
        offered = client.initialize(elicitation={})["capabilities"]["tasks"]
        call = {"name": "confirm_delete", "arguments": {"filename": "a.txt"}, "task": {}}
        id = client.request("tools/call", call)["result"]["task"]["taskId"]
        client.send(request("result", "tasks/result", {"taskId": id}))
        question = client.receive()
        answer = {"action": "accept", "content": {"confirm": True}}
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": answer})
        result = client.receive_response("result")["result"]

    assert offered == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    assert question["method"] == "elicitation/create"
    assert question["params"]["_meta"]["io.modelcontextprotocol/related-task"] == {"taskId": id}
    assert result["content"][0]["text"] == "Deleted a.txt"


def test_a_task_on_stdio_is_cancelled() -> None:
    with stdio_client(CONFORMANCE) as client:
        client.initialize()
        call = {"name": "slow_compute", "arguments": {"seconds": 60}, "task": {}}
        id = client.request("tools/call", call)["result"]["task"]["taskId"]
        cancelled = client.request("tasks/cancel", {"taskId": id})["result"]

    assert cancelled["status"] == "cancelled"


def test_a_client_that_listens_is_notified_of_each_change_of_its_task() -> None:
    meta = {
        PREFIX + "protocolVersion": "2026-07-28",
        PREFIX + "clientCapabilities": DECLARED,
    }
    with stdio_client(CONFORMANCE) as client:
        call = {"name": "confirm_delete", "arguments": {"filename": "a.txt"}, "_meta": meta}
        id = client.request("tools/call", call)["result"]["taskId"]
        wanted = {"taskIds": [id, "somebody-elses"]}
        listen = {"notifications": wanted, "_meta": meta}
        client.send(request("listen", "subscriptions/listen", listen))
        acknowledged = client.receive()["params"]["notifications"]
        seen: list[Any] = []
        while not seen or seen[-1]["status"] != "completed":
            message = client.receive()
            if message.get("method") == "notifications/tasks":
                seen.append(message["params"])
            if seen and "inputRequests" in seen[-1]:
                answers = {
                    key: {"action": "accept", "content": {"confirm": True}}
                    for key in seen[-1]["inputRequests"]
                }
                params = {"taskId": id, "inputResponses": answers, "_meta": meta}
                client.send(request("update", "tasks/update", params))

    assert acknowledged == {"taskIds": [id]}
    assert [each["status"] for each in seen if each["status"] != "working"] == [
        "input_required",
        "completed",
    ]
    assert seen[-1]["result"]["content"][0]["text"] == "Deleted a.txt"
    assert {each["_meta"][PREFIX + "subscriptionId"] for each in seen} == {"listen"}
