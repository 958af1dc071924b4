"""Links in refusals: a token for one user, for some time, for one use."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import serving
from tests.gates.named_users import gated_app, post, rpc

from answerback import App, Context
from answerback.auth import ApiKeys
from answerback.core.authentication import User
from answerback.core.signing import Signer, process_signer
from answerback.gates import LinkRefused, Redeemed, Refusal, UsedFiles, linked, subscription
from answerback.gates.links import LIFETIME, UnsafeDirectory
from answerback.options import Access
from answerback.registry.declarations import registry_of
from answerback.testing import TestContext

ANNA = User(subject="anna", issuer="https://id.example.com")
PAGE = "https://shop.example.com/plans"


def never(ctx: Context) -> bool:
    return False


def shop(tmp_path: Path, page: str = PAGE, url: str | None = None, **options: Any) -> App:
    access = Access(used_tokens=UsedFiles(tmp_path / "used"), url=url)
    app = gated_app("shop", access=access, **options)
    app.resource("ui://widget/accounts.html", name="page")(lambda: "<p>")

    @app.tool(requires=[subscription("pro", check=never, url=page, feature="exports")])
    def export() -> str:
        return "all"

    @app.tool(
        requires=[linked("plaid", check=never, url=page)],
        meta={"openai/outputTemplate": "ui://widget/accounts.html"},
    )
    def accounts() -> list[str]:
        return ["a"]

    @app.resource("note://a", requires=[subscription("pro", check=never, url=page)])
    def note() -> str:
        return "a"

    return app


def link_of(app: App, user: Any = ANNA) -> str:
    reply = asyncio.run(app.call("export", ctx=TestContext(user=user)))
    url: str = reply.meta["answerback/refusal"]["url"]
    return url


def token_of(url: str) -> str:
    return url.partition("token=")[2]


def test_the_page_learns_from_the_token_what_the_user_lacks(tmp_path: Path) -> None:
    app = shop(tmp_path)

    found = app.redeem(token_of(link_of(app)), ANNA)

    assert found == Redeemed("SUBSCRIPTION_REQUIRED", "pro", "exports")


def test_a_token_is_redeemed_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = shop(tmp_path)
    token = token_of(link_of(app))
    app.redeem(token, ANNA)

    with pytest.raises(LinkRefused) as caught:
        app.redeem(token, ANNA)

    assert str(caught.value) == "This link cannot be used; go back and ask for a new one"
    assert "it has already been used" in caplog.text
    assert token not in caplog.text


@pytest.mark.parametrize(
    "user",
    [
        None,
        User(subject="bob", issuer="https://id.example.com"),
        User(subject="anna", issuer="https://other.example.com"),
        User(subject="anna"),
        "anna",
    ],
)
def test_another_user_cannot_redeem_a_token_and_does_not_use_it_up(
    user: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop(tmp_path)
    token = token_of(link_of(app))

    with pytest.raises(LinkRefused):
        app.redeem(token, user)

    assert "it is another user's" in caplog.text
    assert app.redeem(token, ANNA).name == "pro"


def test_a_token_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = shop(tmp_path)
    token = token_of(link_of(app))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LIFETIME + 2)

    with pytest.raises(LinkRefused):
        app.redeem(token, ANNA)

    assert "it has expired" in caplog.text


@pytest.mark.parametrize("change", ["flip", "cut", "empty", "words", "padded", "other key"])
def test_a_forged_token_is_refused_in_the_same_words(change: str, tmp_path: Path) -> None:
    app = shop(tmp_path)
    token = token_of(link_of(app))
    forged = {
        "flip": token[:20] + ("A" if token[20] != "A" else "B") + token[21:],
        "cut": token[:-1],
        "empty": "",
        "words": "not a token ✓",
        "padded": token + "=",
        "other key": Signer(b"another key, of another server").sign(b"x", b"link"),
    }[change]

    with pytest.raises(LinkRefused, match="This link cannot be used"):
        app.redeem(forged, ANNA)


def test_a_token_for_another_purpose_is_refused(tmp_path: Path) -> None:
    token = process_signer().sign(b"x", b"round")

    with pytest.raises(LinkRefused):
        shop(tmp_path).redeem(token, ANNA)


def test_of_many_processes_that_redeem_a_token_at_once_one_succeeds(tmp_path: Path) -> None:
    code = (
        "import sys; from answerback.gates import UsedFiles;"
        f"print(UsedFiles({str(tmp_path / 'used')!r}).add(b'token', 2**33))"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    answers = sorted(each.communicate(timeout=30)[0].strip() for each in running)

    assert answers == ["False", "False", "False", "True"]


def test_the_directory_of_used_tokens_is_closed_to_others(tmp_path: Path) -> None:
    directory = tmp_path / "used"
    UsedFiles(directory).add(b"a", 2**33)

    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "used"
    directory.mkdir()
    directory.chmod(0o777)

    with pytest.raises(UnsafeDirectory, match="must be a directory that only this user can open"):
        UsedFiles(directory).add(b"a", 2**33)


def test_a_link_to_another_directory_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir(mode=0o700)
    (tmp_path / "used").symlink_to(target)

    with pytest.raises(UnsafeDirectory):
        UsedFiles(tmp_path / "used").add(b"a", 2**33)


def test_a_used_link_stays_used_after_the_clock_went_forward_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, now = UsedFiles(tmp_path / "used"), time.time()
    used.add(b"link", int(now) + 900)

    monkeypatch.setattr(time, "time", lambda: now + 7200)
    used.add(b"other", int(now) + 8100)
    monkeypatch.undo()

    assert used.add(b"link", int(now) + 900) is False


def test_files_of_expired_tokens_are_removed(tmp_path: Path) -> None:
    used = UsedFiles(tmp_path / "used")
    used.add(b"old", int(time.time()) - 2 * 86_400)
    used.add(b"new", int(time.time()) + 3600)
    used.add(b"newer", int(time.time()) + 3600)

    assert len(os.listdir(tmp_path / "used")) == 2
    assert used.add(b"new", int(time.time()) + 3600) is False


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("//evil.example.com/plans", "should be an absolute URL"),
        ("shop.example.com/plans", "should be an absolute URL"),
        ("javascript:alert(1)", "should be an absolute URL"),
        ("http://shop.example.com/plans", "should begin with https://"),
        (7, "should be an absolute URL"),
        (" https://shop.example.com/plans", "without spaces"),
        ("https://shop.example.com/a\r\nSet-Cookie: b=c", "without spaces"),
    ],
)
def test_a_page_must_be_a_whole_url_over_https(url: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        subscription("pro", check=never, url=url)


def test_a_path_begins_at_the_configured_url_of_the_app(tmp_path: Path) -> None:
    app = shop(tmp_path, "/plans")
    without = asyncio.run(app.call("export", ctx=TestContext(user=ANNA)))
    configured = shop(tmp_path, "/plans", url="https://tools.example.com/mcp")

    assert "url" not in without.meta["answerback/refusal"]
    assert link_of(configured).startswith("https://tools.example.com/plans?token=")


def test_a_link_keeps_the_query_and_the_fragment_of_its_page(tmp_path: Path) -> None:
    url = link_of(shop(tmp_path, "https://shop.example.com/plans?from=mcp#pro"))

    assert url.startswith("https://shop.example.com/plans?from=mcp&token=")
    assert url.endswith("#pro")


@pytest.mark.parametrize(
    "header", ["x_forwarded_host", "forwarded", "x_forwarded_proto", "referer"]
)
def test_a_forged_header_does_not_change_a_link(header: str, tmp_path: Path) -> None:
    forged = {header: "host=evil.example" if header == "forwarded" else "evil.example"}
    response = post(shop(tmp_path), "/functions/export", {}, "anna", **forged)

    assert PAGE in response.json()["error"]
    assert "evil" not in response.text


def test_text_with_a_link_is_for_clients_that_cannot_open_pages(tmp_path: Path) -> None:
    result = rpc(shop(tmp_path), "tools/call", "anna", name="accounts", arguments={}).json()[
        "result"
    ]

    refusal = result["_meta"]["answerback/refusal"]
    assert result["isError"] is True
    assert refusal["url"] in result["content"][0]["text"]
    assert refusal.keys() == {"code", "message", "hint", "url", "feature"}
    assert result["_meta"]["openai/outputTemplate"] == "ui://widget/accounts.html"


URL_MODE: dict[str, Any] = {"elicitation": {"url": {}}}


def test_in_the_stateless_era_the_client_is_asked_to_open_the_page_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", "a secret for this test alone")
    app = shop(tmp_path)
    for method, asked in (
        ("tools/call", {"name": "export", "arguments": {}}),
        ("resources/read", {"uri": "note://a"}),
    ):
        call: dict[str, Any] = {"era": "2026-07-28", "capabilities": URL_MODE, **asked}
        first = rpc(app, method, "anna", **call).json()["result"]
        ((key, question),) = first["inputRequests"].items()
        answered = {key: {"action": "accept"}}
        call |= {"requestState": first["requestState"], "inputResponses": answered}
        second = rpc(app, method, "anna", **call).json()

        assert first["resultType"] == "input_required"
        assert question["method"] == "elicitation/create"
        assert question["params"]["mode"] == "url"
        assert question["params"]["url"].startswith(PAGE + "?token=")
        assert "token=" not in question["params"]["message"]
        assert "SUBSCRIPTION_REQUIRED" in str(second)
        assert "inputRequests" not in str(second)


def test_in_the_stateless_era_each_plan_is_a_question_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", "a secret for this test alone")
    app, plans = gated_app(), set[str]()

    def has(plan: str) -> Any:
        return subscription(plan, check=lambda ctx: plan in plans, url=PAGE, feature="exports")

    @app.tool(requires=[has("pro"), has("team")])
    def export() -> str:
        return "exported"

    call: dict[str, Any] = {"name": "export", "arguments": {}, "capabilities": URL_MODE}
    messages = []
    for plan in ("pro", "team"):
        result = rpc(app, "tools/call", "anna", era="2026-07-28", **call).json()["result"]
        ((key, question),) = result["inputRequests"].items()
        messages.append(question["params"]["message"])
        plans.add(plan)
        answers = call.get("inputResponses", {}) | {key: {"action": "accept"}}
        call |= {"requestState": result["requestState"], "inputResponses": answers}
    last = rpc(app, "tools/call", "anna", era="2026-07-28", **call).json()["result"]

    assert messages == [
        f"You have no active {plan!r} subscription. Subscribe to use exports"
        for plan in ("pro", "team")
    ]
    assert last["structuredContent"] == {"result": "exported"}


def test_a_client_without_url_mode_is_not_asked(tmp_path: Path) -> None:
    form: dict[str, Any] = {"elicitation": {"form": {}}}

    result = rpc(
        shop(tmp_path),
        "tools/call",
        "anna",
        era="2026-07-28",
        capabilities=form,
        name="export",
        arguments={},
    ).json()["result"]

    assert result["isError"] is True


def test_a_record_of_the_whole_reply_has_no_token(tmp_path: Path) -> None:
    from answerback.records import JSONL, Records

    file = tmp_path / "records.jsonl"
    app = shop(tmp_path)
    records = registry_of(app).records = Records(JSONL(str(file)), content=True)
    link = link_of(app)
    records.close()

    text = file.read_text()
    assert "SUBSCRIPTION_REQUIRED" in text
    assert token_of(link) not in text


WORKERS = """
from answerback import App, Context, Reply
from answerback.auth import ApiKey, ApiKeys
from answerback.gates import LinkRefused, subscription_prompt

app = App("shop", auth=ApiKeys({"DIGEST": ApiKey(name="anna")}))

@app.tool
def export(ctx: Context) -> Reply[str]:
    return subscription_prompt("exports", ctx.user, url="https://shop.example.com/plans")

@app.tool
def redeem(token: str, ctx: Context) -> str:
    try:
        return app.redeem(token, ctx.user).code
    except LinkRefused:
        return "refused"

if __name__ == "__main__":
    app.run()
"""


def test_a_token_of_one_worker_is_redeemed_once_over_all_workers(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    key = ApiKeys.new()
    file.write_text(WORKERS.replace("DIGEST", key.digest))
    headers = {"authorization": f"Bearer {key.key}"}

    with serving(file, "--workers", "2") as server:
        found: list[list[str]] = []
        for _ in range(4):
            # Each request is a connection of its own, which any worker may accept.
            url = f"{server.url}/functions/"
            refused = httpx.post(url + "export", json={}, headers=headers, trust_env=False)
            token = re.findall(r"token=([\w-]+)", refused.json()["error"])[0]
            uses = [
                httpx.post(url + "redeem", json={"token": token}, headers=headers, trust_env=False)
                for _ in range(3)
            ]
            found.append([each.json()["result"] for each in uses])

    assert found == [["SUBSCRIPTION_REQUIRED", "refused", "refused"]] * 4


@pytest.mark.parametrize("message", ["Sign the contract", f"Sign the contract: {PAGE}"])
def test_the_text_of_an_authors_refusal_has_its_link_once(message: str) -> None:
    app = gated_app()

    def has_signed(ctx: Context) -> None:
        raise Refusal(message, "CONTRACT_MISSING", url=PAGE)

    @app.tool(requires=[has_signed])
    def export() -> str:
        return "exported"

    call: dict[str, Any] = {"name": "export", "arguments": {}, "capabilities": URL_MODE}
    read = rpc(app, "tools/call", "anna", name="export", arguments={}).json()["result"]
    asked = rpc(app, "tools/call", "anna", era="2026-07-28", **call).json()["result"]

    assert read["content"][0]["text"] == f"Sign the contract: {PAGE}"
    ((_, question),) = asked["inputRequests"].items()
    assert question["params"]["message"] == "Sign the contract"
