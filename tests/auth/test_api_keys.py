"""API keys: stored as digests, and refused as a token is, without an issuer to log in at."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from hashlib import sha256
from typing import Any

import pytest
from tests.auth.requests import CALL, Caller

from answerback import Context
from answerback.auth import ApiKey, ApiKeys
from answerback.auth.api_keys import NewApiKey
from answerback.gates import login, scope

KEY = "ab_" + "k3Y-" * 10 + "_x9"
# Not a new one each time: the names of the tests would differ between workers.
NEW = NewApiKey(KEY, sha256(KEY.encode()).hexdigest())


def keys_caller(**keys: Any) -> Caller:
    return Caller(ApiKeys({NEW.digest: "ci", **keys}))


@pytest.mark.parametrize(
    "headers",
    [{"Authorization": f"Bearer {NEW.key}"}, {"X-API-Key": NEW.key}, {"x-api-key": f" {NEW.key} "}],
)
@pytest.mark.parametrize("path", ["/functions/who", "/mcp", "/message"])
def test_a_key_is_accepted_in_either_header(path: str, headers: dict[str, str]) -> None:
    caller = keys_caller()

    reply = caller.send("POST", path, headers, json=_body(path))

    assert reply.status_code == 200
    assert caller.ran == ["ci"]


def _body(path: str) -> Any:
    return {} if path.startswith("/functions") else CALL


@pytest.mark.parametrize(
    "key",
    [
        "",
        "x",
        NEW.digest,
        NEW.key[:-1],
        NEW.key + "x",
        NEW.key.swapcase(),
        "k" * 20_000,
        NEW.key + "\x00",
        "\xe9" * 30,
    ],
)
def test_another_key_is_401_without_an_issuer_to_log_in_at(key: str) -> None:
    caller = keys_caller()

    reply = caller.send("POST", "/functions/who", {"X-API-Key": key}, json={})

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == (
        'Bearer error="invalid_token", error_description="the key is unknown"'
    )
    assert caller.ran == []


def test_a_short_key_is_refused_even_if_its_digest_is_stored() -> None:
    caller = keys_caller(**{sha256(b"hunter2").hexdigest(): "weak"})

    assert (
        caller.send("POST", "/functions/who", {"X-API-Key": "hunter2"}, json={}).status_code == 401
    )
    assert caller.ran == []


def test_no_key_is_401_with_a_bare_challenge() -> None:
    caller = keys_caller()

    reply = caller.call(path="/mcp")

    assert reply.status_code == 401
    assert reply.headers["www-authenticate"] == "Bearer"
    assert caller.send("GET", "/.well-known/oauth-protected-resource").status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        [("X-API-Key", NEW.key), ("X-API-Key", NEW.key)],
        [("X-API-Key", NEW.key), ("Authorization", f"Bearer {NEW.key}")],
    ],
)
def test_two_keys_in_a_request_are_refused(headers: list[tuple[str, str]]) -> None:
    caller = keys_caller()

    reply = caller.send("POST", "/functions/who", headers, json={})

    assert reply.status_code == 400
    assert caller.ran == []


def test_a_key_in_the_query_is_refused() -> None:
    caller = keys_caller()

    reply = caller.call(path=f"/functions/who?api_key={NEW.key}")

    assert reply.status_code == 400
    assert NEW.key not in reply.text + str(reply.headers)


def test_a_key_that_has_expired_is_refused() -> None:
    made = ApiKeys.new()
    caller = Caller(ApiKeys({made.digest: ApiKey(name="old", expires=time.time() - 1)}))

    assert caller.call(made.key).status_code == 401
    assert caller.ran == []


@pytest.mark.parametrize("digest", [NEW.key, "abc", NEW.digest[:-1], NEW.digest + "0", "g" * 64])
def test_a_key_instead_of_its_digest_is_refused_and_not_shown(digest: str) -> None:
    with pytest.raises(ValueError, match="SHA-256") as caught:
        ApiKeys({digest: "ci"})

    assert NEW.key not in str(caught.value)


def test_new_keys_differ_and_have_256_bits() -> None:
    made = [ApiKeys.new() for _ in range(50)]

    assert len({key for key, _ in made}) == 50
    assert all(len(key) >= 43 and sha256(key.encode()).hexdigest() == it for key, it in made)
    assert NEW.key not in repr(keys_caller().auth)


def test_the_command_prints_a_key_and_its_digest() -> None:
    command = [sys.executable, "-m", "answerback", "key", "--name", "ci"]

    lines = subprocess.run(command, capture_output=True, check=True, timeout=30).stdout.decode()

    key, digest = (line.split()[1] for line in lines.splitlines()[:2])
    assert sha256(key.encode()).hexdigest() == digest
    assert f'ApiKeys({{"{digest}": "ci"}})' in lines


@pytest.mark.parametrize("headers", [{"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}])
@pytest.mark.parametrize("path", ["/functions/passed_on", "/mcp"])
def test_a_tool_does_not_see_the_key_in_the_headers(path: str, headers: dict[str, str]) -> None:
    caller = keys_caller()

    @caller.app.tool
    def passed_on(ctx: Context) -> list[str]:
        return [*(ctx.request.headers or {}).values()]

    body: Any = {"name": "passed_on", "arguments": {}}
    body = {} if path != "/mcp" else {**CALL, "params": body}
    reply = caller.send("POST", path, {**headers, "X-Tenant": "blue"}, json=body)

    assert "blue" in reply.text
    assert KEY not in reply.text


def test_a_refused_key_is_logged_without_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "answerback.auth")

    keys_caller().send("POST", "/functions/who", {"X-API-Key": KEY[::-1]}, json={})

    assert "credentials were refused: the key is unknown" in caplog.text
    assert KEY[::-1] not in caplog.text


class GatedCaller(Caller):
    """Also has a tool for a scope that the key lacks, and one for any key."""

    def __init__(self, **options: Any) -> None:
        super().__init__(ApiKeys({NEW.digest: ApiKey(name="ci", scopes=["read"])}, **options))

        @self.app.tool(requires=[scope("admin")])
        def wipe() -> None: ...

        @self.app.tool(requires=[login()])
        def mine() -> None: ...


@pytest.mark.parametrize("anonymous", [False, True])
def test_a_client_without_a_key_reads_how_to_send_one(anonymous: bool) -> None:
    reply = GatedCaller(anonymous=anonymous).send("POST", "/functions/mine")

    assert reply.status_code == 401
    assert reply.json() == {
        "error": "This needs a key: send it as X-API-Key: KEY or Authorization: Bearer KEY"
    }


@pytest.mark.parametrize("tool", ["mine", "wipe"])
def test_a_caller_that_cannot_send_a_header_is_not_told_to_send_a_key(tool: str) -> None:
    """The command line, stdio and calls in memory have no headers."""
    reply = asyncio.run(GatedCaller().app.call(tool))

    assert reply.error is not None
    assert reply.error.code == "LOGIN_REQUIRED"
    assert reply.error.message == "You are not logged in. Log in to use this"


def test_a_key_without_the_scope_is_not_told_to_log_in() -> None:
    reply = GatedCaller().send("POST", "/functions/wipe", {"X-API-Key": NEW.key})

    assert reply.status_code == 403
    assert reply.json() == {"error": "This needs a scope that the key does not have: admin"}
    assert reply.headers["X-Error-Hint"] == "use a key that has it"
