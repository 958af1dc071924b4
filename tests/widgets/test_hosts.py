"""The one key that depends on the host: `ui.domain` on the content of a widget."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, serving
from tests.widgets.mcp_requests import STATELESS, WITH_META, ask, content, uri_of

from answerback import App
from answerback.core.authentication import checked_authenticator
from answerback.options import Access
from answerback.registry.declarations import registry_of

URL = "https://example.com/mcp"
DOMAIN = "c3d80a4ed901ee05b21755a88273b4a4.claudemcpcontent.com"


def bank(url: str = URL, **options: Any) -> App:
    app = App("bank", access=Access(url=url)) if url else App("bank")
    app.widget("accounts", html="<h1>Accounts</h1>", domain="https://a.example.com", **options)
    return app


def domain(app: App, **how: Any) -> Any:
    """The domain that a client gets; None if there is none."""
    return asyncio.run(content(app, "accounts", **how))["_meta"]["ui"].get("domain")


@pytest.mark.parametrize("version", WITH_META)
@pytest.mark.parametrize(
    ("agent", "client", "expected"),
    [
        ("Claude-User", "test", DOMAIN),
        ("claude-code/2.1 (cli)", "test", DOMAIN),
        ("python-httpx/0.28", "claude-ai", DOMAIN),
        ("", "Anthropic/ClaudeAI", DOMAIN),
        ("openai-mcp/1.0.0", "claude-ai", None),
        ("openai-mcp/1.0.0", "openai-mcp", None),
        ("python-httpx/0.28", "vscode", None),
    ],
)
def test_only_claude_gets_the_domain_that_it_wants(
    version: str, agent: str, client: str, expected: str | None
) -> None:
    assert domain(bank(), version=version, agent=agent, client=client) == expected


@pytest.mark.parametrize("agent", ["Claude-User", "openai-mcp/1.0.0", "curl/8"])
def test_the_origin_for_chatgpt_goes_to_every_host(agent: str) -> None:
    read = asyncio.run(content(bank(), "accounts", agent=agent))

    assert read["_meta"]["openai/widgetDomain"] == "https://a.example.com"


@pytest.mark.parametrize(
    ("host", "agent", "expected"),
    [
        ("claude", "curl/8", DOMAIN),
        ("claude", "openai-mcp/1.0.0", DOMAIN),
        ("chatgpt", "Claude-User", None),
        ("other", "Claude-User", None),
    ],
)
def test_the_author_can_force_the_form_of_a_host(host: Any, agent: str, expected: Any) -> None:
    assert domain(bank(host=host), agent=agent) == expected


def test_the_digest_is_of_the_exact_url() -> None:
    other = domain(bank("https://example.com/mcp?tenant=1"), agent="Claude-User")

    assert re.fullmatch(r"[0-9a-f]{32}\.claudemcpcontent\.com", other)
    assert other != DOMAIN


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1"},
        {"x-forwarded-host": "evil.example", "x-forwarded-proto": "https"},
        {"forwarded": "host=evil.example;proto=https"},
    ],
)
def test_the_url_is_never_taken_from_the_request(headers: dict[str, str]) -> None:
    configured = domain(bank(), agent="Claude-User", headers=headers)
    unknown = domain(bank(""), agent="Claude-User", headers=headers)

    assert configured == DOMAIN
    assert unknown is None


class Login:
    """Authenticates nobody."""

    url = URL
    anonymous = True

    async def authenticate(self, credentials: Any) -> None:
        return None

    def www_authenticate(self, challenge: Any) -> str:
        return "Bearer"


def test_the_url_of_the_authentication_counts_first() -> None:
    app = bank("https://other.example/mcp")
    registry_of(app).auth = checked_authenticator(Login())

    assert domain(app, agent="Claude-User") == DOMAIN


def test_two_urls_of_one_endpoint_are_refused() -> None:
    same = App("bank", access=Access(url=URL), auth=Login())

    with pytest.raises(ValueError, match="is not the url of auth=; leave one of them out"):
        App("bank", access=Access(url="https://other.example/mcp"), auth=Login())

    assert registry_of(same).url == URL


def test_the_url_of_the_app_that_serves_counts_for_included_widgets() -> None:
    inner, outer = bank("https://inner.example/mcp"), App("outer", access=Access(url=URL))
    outer.include(inner)

    assert domain(outer, agent="Claude-User") == DOMAIN


def test_a_read_is_not_cacheable_by_others() -> None:
    answer = asyncio.run(ask(bank(), "resources/read", {"uri": uri_of("accounts")}))

    assert answer["result"]["cacheScope"] == "private"
    assert answer["result"]["ttlMs"] == 0


def test_a_server_on_stdio_has_no_url_that_claude_could_know(tmp_path: Path) -> None:
    file = tmp_path / "bank.py"
    file.write_text(PROGRAM)
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "claude-ai", "version": "1"},
    }
    params = {"uri": uri_of("accounts"), "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    command = [sys.executable, str(file), "mcp"]
    sent = json.dumps(request).encode() + b"\n"

    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, timeout=60)

    read = json.loads(done.stdout)["result"]["contents"][0]
    assert read["_meta"]["ui"].keys() == {"csp"}


PROGRAM = """
from answerback import App
from answerback.options import Access

app = App("bank", access=Access(url="https://example.com/mcp"))
app.widget("accounts", html="<h1>Accounts</h1>")
app.run()
"""


def test_the_command_line_gives_the_url(tmp_path: Path) -> None:
    import httpx

    file = tmp_path / "bank.py"
    file.write_text(PROGRAM.replace(', access=Access(url="https://example.com/mcp")', ""))
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"uri": uri_of("accounts"), "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    headers = {
        "accept": "application/json, text/event-stream",
        "user-agent": "Claude-User",
        "mcp-protocol-version": STATELESS,
        "mcp-method": "resources/read",
        "mcp-name": uri_of("accounts"),
    }

    with serving(file, "--url", URL) as server:
        answer = httpx.post(f"{server.url}/mcp", json=request, headers=headers, timeout=60).json()

    assert answer["result"]["contents"][0]["_meta"]["ui"]["domain"] == DOMAIN


def test_each_row_of_the_table_of_hosts_names_a_source_and_its_date() -> None:
    page = (ROOT / "docs" / "guides" / "widgets.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith(("| Cl", "| Ch", "| sev"))]

    wrong = [row for row in rows if not re.fullmatch(r"(\| [^|]+ ){4}\| 20\d\d-\d\d-\d\d \|", row)]

    assert len(rows) >= 15
    assert wrong == []


WITH_LOGIN = """
from answerback import App

class Login:
    url = "https://example.com/mcp"
    anonymous = True

    async def authenticate(self, credentials):
        return None

    def www_authenticate(self, challenge):
        return "Bearer"

app = App("bank", auth=Login())
app.run()
"""


def test_a_url_of_the_command_line_that_is_not_that_of_the_login_is_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bank.py"
    file.write_text(WITH_LOGIN)
    command = [sys.executable, str(file), "serve", "--url", "https://other.example/mcp"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.returncode != 0
    assert "--url is https://other.example/mcp, but the app's auth= has" in done.stderr
    assert "Traceback" not in done.stderr
