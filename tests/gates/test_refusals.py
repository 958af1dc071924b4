"""Refusals of gates on every wire: statuses, headers, results and JSON-RPC errors."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.gates.named_users import METADATA, authenticated, gated_app, post, request, rpc

from answerback import App, Context, Forbidden, Unauthenticated
from answerback.gates import linked, login, scope, subscription
from answerback.options import Access

ERAS = pytest.mark.parametrize("era", ["2025-06-18", "2025-11-25", "2026-07-28"])
FILE = """
from answerback import App
from answerback.gates import login

app = App("bank", requires=[login()])

@app.tool
def add(x: int) -> int:
    return x

@app.resource("note://a")
def note() -> str:
    return "a"

if __name__ == "__main__":
    app.run()
"""


def is_rich(ctx: Context) -> bool:
    return bool(ctx.user.subject == "rich")


def bank(**options: Any) -> App:
    app = gated_app(**options)
    app.ran = []  # type: ignore[attr-defined]  # the calls, for the tests

    @app.tool(requires=[login(), scope("a:read"), scope("b:read")])
    def balance(x: int) -> int:
        app.ran.append(x)  # type: ignore[attr-defined]  # see above
        return x

    @app.tool
    def free(x: int) -> int:
        app.ran.append(x)  # type: ignore[attr-defined]  # see above
        return x

    @app.tool(requires=[subscription("pro", check=is_rich)])
    def export() -> str:
        return "all"

    @app.tool(requires=[linked("plaid", check=is_rich)])
    def accounts() -> list[str]:
        return ["a"]

    @app.resource("note://{name}", requires=[login(), scope("a:read")])
    def note(name: str) -> str:
        return name

    @app.prompt(requires=[login(), subscription("pro", check=is_rich)])
    def ask(what: str) -> str:
        return what

    @app.completion("ask", "what")
    def whats(value: str) -> list[str]:
        return ["secret"]

    @app.prompt
    def hello(name: str) -> str:
        return name

    @app.completion("hello", "name", requires=[login()])
    def names(value: str) -> list[str]:
        return ["secret"]

    return app


@ERAS
def test_over_mcp_a_login_is_asked_for_with_401_and_the_scopes(era: str) -> None:
    response = rpc(bank(), "tools/call", era=era, name="balance", arguments={"x": 1})

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == (
        f'Bearer scope="a:read b:read", resource_metadata="{METADATA}"'
    )
    assert response.headers["cache-control"] == "no-store"
    assert response.json()["id"] == 1
    assert response.json()["error"]["data"] == {"code": "LOGIN_REQUIRED"}


@ERAS
def test_over_mcp_a_missing_scope_is_403_with_all_scopes(era: str) -> None:
    response = rpc(bank(), "tools/call", "bob,a:read", era=era, name="balance", arguments={"x": 1})

    assert response.status_code == 403
    assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert 'scope="a:read b:read"' in response.headers["www-authenticate"]
    assert response.json()["error"]["data"] == {"code": "SCOPE_REQUIRED"}


@ERAS
def test_over_mcp_subscription_and_link_are_results_at_200(era: str) -> None:
    for name, code in (("export", "SUBSCRIPTION_REQUIRED"), ("accounts", "LINK_REQUIRED")):
        response = rpc(bank(), "tools/call", "bob", era=era, name=name, arguments={})

        result = response.json()["result"]
        assert response.status_code == 200
        assert "www-authenticate" not in response.headers
        assert result["isError"] is True
        assert "structuredContent" not in result
        assert result["_meta"]["answerback/refusal"]["code"] == code


@ERAS
def test_a_user_who_passes_gets_the_result(era: str) -> None:
    app = bank()

    response = rpc(
        app, "tools/call", "bob,a:read,b:read", era=era, name="balance", arguments={"x": 4}
    )

    assert response.status_code == 200
    assert response.json()["result"]["structuredContent"] == {"result": 4}
    assert app.ran == [4]  # type: ignore[attr-defined]  # see bank


CHATGPT: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"user_agent": "openai-mcp/1.0.0 (ChatGPT)"}, {}),
    ({}, {"openai/userAgent": "ChatGPT/1.0"}),
]


@pytest.mark.parametrize(("headers", "meta"), CHATGPT)
def test_chatgpt_is_asked_to_log_in_by_the_result(
    headers: dict[str, str], meta: dict[str, Any]
) -> None:
    message = request("tools/call", name="balance", arguments={"x": 1}, _meta=meta)

    response = post(bank(), "/mcp", message, mcp_protocol_version="2025-11-25", **headers)

    result = response.json()["result"]
    assert response.status_code == 200
    assert result["isError"] is True
    (challenge,) = result["_meta"]["mcp/www_authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'error_description="You are not logged in' in challenge
    assert f'resource_metadata="{METADATA}"' in challenge
    assert 'scope="a:read b:read"' in challenge


def test_the_app_can_choose_the_form_of_a_challenge() -> None:
    by_result = rpc(
        bank(access=Access(challenge="result")), "tools/call", name="balance", arguments={"x": 1}
    )
    by_http = post(
        bank(access=Access(challenge="http")),
        "/mcp",
        request("tools/call", name="balance", arguments={"x": 1}),
        user_agent="openai-mcp/1.0.0 (ChatGPT)",
    )

    assert by_result.status_code == 200
    assert "mcp/www_authenticate" in by_result.json()["result"]["_meta"]
    assert by_http.status_code == 401


def test_a_wrong_form_of_a_challenge_is_refused() -> None:
    with pytest.raises(TypeError, match="should be 'auto', 'http' or 'result'"):
        App("bank", access=Access(challenge="header"))  # type: ignore[arg-type]  # the case


@ERAS
def test_resources_and_prompts_have_the_status_even_for_chatgpt(era: str) -> None:
    app = bank(access=Access(challenge="result"))
    read = rpc(app, "resources/read", era=era, uri="note://a")
    got = rpc(app, "prompts/get", era=era, name="ask", arguments={"what": "x"})
    step_up = rpc(app, "resources/read", "bob", era=era, uri="note://a")

    assert [read.status_code, got.status_code, step_up.status_code] == [401, 401, 403]
    assert 'scope="a:read"' in read.headers["www-authenticate"]
    assert read.json()["error"]["data"]["code"] == "LOGIN_REQUIRED"
    assert step_up.json()["error"]["data"]["code"] == "SCOPE_REQUIRED"


@ERAS
def test_a_prompt_that_needs_a_subscription_is_an_error_with_its_code(era: str) -> None:
    response = rpc(bank(), "prompts/get", "bob", era=era, name="ask", arguments={"what": "x"})

    assert response.status_code == (400 if era == "2026-07-28" else 200)
    assert response.json()["error"]["data"]["code"] == "SUBSCRIPTION_REQUIRED"


@ERAS
@pytest.mark.parametrize("prompt", ["ask", "hello"])
def test_completions_of_gated_prompts_and_gated_completions_are_refused(
    era: str, prompt: str
) -> None:
    argument = "what" if prompt == "ask" else "name"
    response = rpc(
        bank(),
        "completion/complete",
        era=era,
        ref={"type": "ref/prompt", "name": prompt},
        argument={"name": argument, "value": ""},
    )

    assert response.status_code == 401
    assert "secret" not in response.text


def test_a_completion_is_given_to_a_user_who_passes_the_gates_of_its_prompt() -> None:
    arguments: dict[str, Any] = {
        "ref": {"type": "ref/prompt", "name": "ask"},
        "argument": {"name": "what", "value": ""},
    }

    refused = rpc(bank(), "completion/complete", "bob", **arguments)
    given = rpc(bank(), "completion/complete", "rich", **arguments)

    assert refused.json()["error"]["data"]["code"] == "SUBSCRIPTION_REQUIRED"
    assert given.json()["result"]["completion"]["values"] == ["secret"]


def test_a_prompt_whose_gates_need_its_arguments_completes_nothing() -> None:
    app = gated_app()

    def owns(ctx: Context, what: str) -> bool:
        return what == "mine"

    @app.prompt(requires=[owns])
    def ask(what: str) -> str:
        return what

    @app.completion("ask", "what")
    def whats(value: str) -> list[str]:
        return ["secret"]

    response = rpc(
        app,
        "completion/complete",
        ref={"type": "ref/prompt", "name": "ask"},
        argument={"name": "what", "value": ""},
    )

    assert response.json()["result"]["completion"]["values"] == []


@ERAS
def test_the_protocol_is_checked_before_the_gates(era: str) -> None:
    app = bank()
    unknown = rpc(app, "tools/call", era=era, name="nothing", arguments={})
    malformed = rpc(app, "tools/call", era=era, name="balance", arguments=[1])
    no_method = rpc(app, "tools/nothing", era=era)
    no_json = post(app, "/mcp", "x", mcp_protocol_version=era)

    assert [unknown.status_code, malformed.status_code, no_method.status_code] != [401, 401, 401]
    assert unknown.json()["error"]["code"] == -32602
    assert malformed.json()["error"]["code"] == -32602
    assert no_method.json()["error"]["code"] == -32601
    assert no_json.status_code == 400


def test_a_client_that_prefers_a_stream_gets_the_status_too() -> None:
    response = post(
        bank(),
        "/mcp",
        request("tools/call", name="balance", arguments={"x": 1}),
        accept="text/event-stream, application/json",
    )

    assert response.status_code == 401
    assert response.headers["content-type"] == "application/json"


def test_a_client_that_prefers_a_stream_gets_one_after_the_gates() -> None:
    response = post(
        bank(),
        "/mcp",
        request("tools/call", name="balance", arguments={"x": 1}),
        "bob,a:read,b:read",
        accept="text/event-stream, application/json",
    )

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
    assert '"isError":false' in response.text


def test_no_stream_begins_while_a_gate_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """The keep-alive would begin one, and then it is too late for a status."""
    monkeypatch.setattr("answerback.server.asgi.in_flight.TICK", 0.01)
    monkeypatch.setattr("answerback.server.asgi.in_flight.KEEP_ALIVE", 0.02)
    app = gated_app()

    async def slow(ctx: Context) -> None:
        await asyncio.sleep(0.2)
        raise Unauthenticated("log in")

    @app.tool(requires=[slow])
    def add(x: int) -> int:
        return x

    for era in ("2025-11-25", "2026-07-28"):
        response = rpc(app, "tools/call", era=era, name="add", arguments={"x": 1})

        assert response.status_code == 401
        assert response.headers["content-type"] == "application/json"


def batch(app: App, token: str, *requests: dict[str, Any], **headers: str) -> httpx.Response:
    return post(app, "/mcp", list(requests), token, mcp_protocol_version="2025-03-26", **headers)


def test_a_batch_with_one_challenge_is_refused_whole_and_nothing_runs() -> None:
    app = bank()

    response = batch(
        app,
        "",
        request("tools/call", 1, name="free", arguments={"x": 1}),
        request("tools/call", 2, name="balance", arguments={"x": 2}),
    )

    assert response.status_code == 401
    assert 'scope="a:read b:read"' in response.headers["www-authenticate"]
    assert app.ran == []  # type: ignore[attr-defined]  # see bank


def test_a_batch_is_refused_whole_if_a_subscription_needs_a_login() -> None:
    app, ran = gated_app(), []

    @app.tool
    def free() -> None:
        ran.append("free")

    @app.tool(requires=[subscription("pro", check=lambda ctx: True)])
    def paid() -> None:
        ran.append("paid")

    calls = [request("tools/call", n, name=name) for n, name in enumerate(("free", "paid"), 1)]
    stranger = batch(app, "", *calls)
    ran_for_stranger = list(ran)
    user = batch(app, "anna", *calls)

    assert (stranger.status_code, ran_for_stranger) == (401, [])
    assert stranger.headers["www-authenticate"].startswith("Bearer ")
    assert (user.status_code, ran) == (200, ["free", "paid"])


def test_a_batch_of_chatgpt_gets_the_challenge_in_the_result_of_its_request() -> None:
    response = batch(
        bank(),
        "",
        request("tools/call", 1, name="free", arguments={"x": 1}),
        request("tools/call", 2, name="balance", arguments={"x": 2}),
        user_agent="ChatGPT",
    )

    free, balance = response.json()
    assert response.status_code == 200
    assert free["result"]["isError"] is False
    assert "mcp/www_authenticate" in balance["result"]["_meta"]


def test_a_batch_of_a_user_who_passes_is_answered() -> None:
    response = batch(
        bank(),
        "bob,a:read,b:read",
        request("tools/call", 1, name="balance", arguments={"x": 2}),
        request("tools/call", 2, name="export", arguments={}),
    )

    balance, export = response.json()
    assert balance["result"]["isError"] is False
    assert export["result"]["isError"] is True


def test_the_plain_message_route_has_the_status() -> None:
    response = post(bank(), "/message", request("tools/call", name="balance", arguments={"x": 1}))

    assert response.status_code == 401
    assert "www-authenticate" in response.headers


@pytest.mark.parametrize(
    ("name", "token", "status", "code"),
    [
        ("balance", "", 401, "LOGIN_REQUIRED"),
        ("balance", "bob", 403, "SCOPE_REQUIRED"),
        ("export", "bob", 402, "SUBSCRIPTION_REQUIRED"),
        ("accounts", "bob", 403, "LINK_REQUIRED"),
    ],
)
def test_rest_has_the_status_and_for_a_login_the_header(
    name: str, token: str, status: int, code: str
) -> None:
    response = post(bank(), f"/functions/{name}", {"x": 1} if name == "balance" else {}, token)

    assert response.status_code == status
    assert response.headers["x-error-code"] == code
    assert ("www-authenticate" in response.headers) == (
        code in ("LOGIN_REQUIRED", "SCOPE_REQUIRED")
    )
    assert isinstance(response.json()["error"], str)


def test_a_tool_that_raises_unauthenticated_over_rest_has_the_header_too() -> None:
    app = gated_app()

    @app.tool
    def check() -> None:
        raise Unauthenticated("log in")

    @app.tool
    def forbid() -> None:
        raise Forbidden("no")

    assert "www-authenticate" in post(app, "/functions/check", {}).headers
    assert "www-authenticate" not in post(app, "/functions/forbid", {}).headers


def test_gates_run_again_when_the_client_answers_a_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", "a secret for this test alone")
    ran: list[int] = []
    app = gated_app()

    def count(ctx: Context) -> bool | None:
        ran.append(1)
        return None if len(ran) == 1 else False

    @app.tool(requires=[count])
    async def ask(ctx: Context) -> str:
        return "yes" if await ctx.elicit("Sure?", bool, key="sure") else "no"

    capabilities: dict[str, Any] = {"elicitation": {"form": {}}}
    call: dict[str, Any] = {"name": "ask", "arguments": {}, "era": "2026-07-28"}
    first = rpc(app, "tools/call", **call, capabilities=capabilities).json()["result"]
    second = rpc(
        app,
        "tools/call",
        **call,
        capabilities=capabilities,
        requestState=first["requestState"],
        inputResponses={"sure": {"action": "accept", "content": {"value": True}}},
    ).json()["result"]

    assert first["resultType"] == "input_required"
    assert second["isError"] is True
    assert second["_meta"]["answerback/refusal"]["code"] == "FORBIDDEN"


def run(tmp_path: Path, *arguments: str, stdin: str = "", **environ: str) -> Any:
    file = tmp_path / "bank.py"
    file.write_text(FILE)
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **environ},
        check=False,
    )


def test_the_command_line_says_it_plainly_and_exits_with_77(tmp_path: Path) -> None:
    done = run(tmp_path, "call", "add", "x=1")

    assert done.returncode == 77
    assert done.stdout == ""
    assert "You are not logged in" in done.stderr
    assert "Traceback" not in done.stderr


def test_cgi_has_the_status_and_the_header(tmp_path: Path) -> None:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/functions/add",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": "7",
    }
    refused = run(tmp_path, "cgi", stdin='{"x":1}', **environ)
    served = run(tmp_path, "cgi", stdin='{"x":1}', REMOTE_USER="anna", **environ)

    assert refused.stdout.startswith("Status: 401 Unauthorized\n")
    assert "WWW-Authenticate: Bearer\n" in refused.stdout
    assert served.stdout.startswith("Status: 200 OK\n")


def test_over_stdio_a_refusal_is_a_result_or_a_json_rpc_error(tmp_path: Path) -> None:
    messages = [
        request("tools/call", 1, name="add", arguments={"x": 1}),
        request("resources/read", 2, uri="note://a"),
    ]
    done = run(tmp_path, "mcp", stdin="".join(json.dumps(each) + "\n" for each in messages))

    replies = sorted(map(json.loads, done.stdout.splitlines()), key=lambda each: each["id"])
    assert replies[0]["result"]["isError"] is True
    assert replies[0]["result"]["_meta"]["answerback/refusal"]["code"] == "LOGIN_REQUIRED"
    assert "mcp/www_authenticate" not in replies[0]["result"]["_meta"]
    assert replies[1]["error"]["data"]["code"] == "LOGIN_REQUIRED"


def test_the_application_without_users_refuses_everyone() -> None:
    assert authenticated(bank()) is not None
    app = App("bank", requires=[login()])

    @app.tool
    def add(x: int) -> int:
        return x

    response = post(app, "/functions/add", {"x": 1}, "anna")

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"


def test_a_rest_client_gets_the_page_of_a_refusal_in_a_header_and_nobody_keeps_it() -> None:
    app = gated_app()
    plans = "https://shop.example.com/plans"

    @app.tool(requires=[subscription("pro", check=lambda ctx: False, url=plans)])
    def report() -> int:
        return 1

    refused = post(app, "/functions/report", {}, "anna")

    assert refused.headers["x-error-url"].startswith(f"{plans}?token=")
    assert refused.headers["cache-control"] == "no-store"


OWN_GATES = """
import os
import sys
from answerback import App, Context, Limits

app = App("bank", limits=Limits(gates=float(os.environ["GATES_SECONDS"])))

def plain(ctx: Context) -> None: ...

async def quick(ctx: Context) -> None: ...

async def with_arguments(ctx: Context, x: int) -> bool:
    return x < 5

async def waits(ctx: Context) -> None:
    import asyncio
    await asyncio.sleep(0.001)

async def hangs(ctx: Context) -> None:
    await asyncio.Event().wait()

def blocks(ctx: Context) -> None:
    import threading
    threading.Event().wait()

@app.tool(requires=[plain, quick, with_arguments])
def add(x: int) -> int:
    return x

if "slow" in sys.argv[0]:
    import asyncio

    @app.tool(requires=[plain, waits, with_arguments])
    async def add_slowly(x: int) -> int:
        return x

    @app.tool(requires=[hangs])
    def hang() -> int:
        return 1

    @app.tool(requires=[blocks], inline=True)
    def block() -> int:
        return 1

if __name__ == "__main__":
    app.run()
"""
CASES = [
    ("bank", "add", 1, None),
    ("bank", "add", 7, "FORBIDDEN"),
    ("slow", "add_slowly", 1, None),
    ("slow", "add_slowly", 7, "FORBIDDEN"),
    ("slow", "hang", None, "TIMED_OUT"),
    ("slow", "block", None, "TIMED_OUT"),
]


@pytest.mark.parametrize(
    ("wire", "file", "name", "x", "code"),
    [*(("call", *case) for case in CASES), *(("cgi", *case) for case in CASES[::2])],
)
def test_gates_of_the_author_run_where_there_is_no_event_loop(
    tmp_path: Path, wire: str, file: str, name: str, x: int | None, code: str | None
) -> None:
    (tmp_path / f"{file}.py").write_text(OWN_GATES)
    body = "{}" if x is None else f'{{"x":{x}}}'
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/functions/{name}",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "GATES_SECONDS": "0.3" if code == "TIMED_OUT" else "60",
    }
    arguments = [] if x is None else [f"x={x}"]
    command = ["cgi"] if wire == "cgi" else ["call", name, *arguments]

    done = subprocess.run(
        [sys.executable, str(tmp_path / f"{file}.py"), *command],
        input=body if wire == "cgi" else "",
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, **environ},
        check=False,
    )

    answer = done.stdout + done.stderr
    assert ("FORBIDDEN" in answer) == (code == "FORBIDDEN"), answer
    assert ("TIMED_OUT" in answer) == (code == "TIMED_OUT"), answer
    assert ('"result":1' in answer.replace(" ", "")) == (code is None), answer


def test_gates_of_the_author_run_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(OWN_GATES)
    messages = [
        request("tools/call", number, name=name, arguments={} if x is None else {"x": x})
        for number, (_, name, x, _) in enumerate(CASES)
    ]

    done = subprocess.run(
        [sys.executable, str(tmp_path / "slow.py"), "mcp"],
        env={**os.environ, "GATES_SECONDS": "5"},
        input="".join(json.dumps(each) + "\n" for each in messages),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    replies = sorted(map(json.loads, done.stdout.splitlines()), key=lambda each: each["id"])
    codes = [
        each["result"].get("_meta", {}).get("answerback/error", {}).get("code") for each in replies
    ]
    assert codes == [code for *_, code in CASES]
