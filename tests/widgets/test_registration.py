"""What `app.widget` and `@app.tool(widget=)` refuse, and what they tell the author."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from answerback import CSP, App
from answerback.options import Access, Shown

PAGE = "<h1>Accounts</h1>"


@pytest.mark.parametrize("name", ["", "a b", "a/b", "../a", "é", "a.html", "x" * 65, None, 7])
def test_a_name_that_a_uri_cannot_have_is_refused(name: Any) -> None:
    with pytest.raises(ValueError, match="cannot be the name of a widget; use 1 to 64 of"):
        App("bank").widget(name, html=PAGE)


@pytest.mark.parametrize("options", [{}, {"html": PAGE, "path": "accounts.html"}])
def test_a_widget_has_either_a_text_or_a_file(options: Any) -> None:
    with pytest.raises(TypeError, match="needs either html= with the text of the page, or path="):
        App("bank").widget("accounts", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"html": "accounts.html"}, "html has no HTML in it; write path='accounts.html'"),
        ({"html": " "}, "html has no HTML in it; write the page, such as"),
        ({"html": "<p>\ud800"}, "html has a character that UTF-8 cannot encode, at 3"),
        ({"html": b"<p>"}, "html should be the text of a page, not bytes"),
        ({"path": 7}, "path=7 should be the name of a file, such as 'accounts.html'"),
        ({"html": PAGE, "csp": {"connect": []}}, "should be a CSP, such as CSP(connect="),
        ({"html": PAGE, "border": "yes"}, "border='yes' should be True or False"),
        ({"html": PAGE, "bridge": 1}, "bridge=1 should be True or False"),
        ({"html": PAGE, "description": 7}, "description=7 should be a str"),
        ({"html": PAGE, "host": "vscode"}, "should be one of 'claude', 'chatgpt', 'other'"),
        ({"html": PAGE, "title": "x"}, "no option is named 'title'; the options are border, b"),
        ({"html": PAGE, "permissions": "camera"}, "should be a set, such as {'camera'}"),
        ({"html": PAGE, "permissions": {"clipboard-write"}}, "write 'clipboardWrite'"),
        ({"html": PAGE, "permissions": ["usb"]}, "use one of camera, microphone, geolocation"),
        ({"html": PAGE, "domain": "x.example.com"}, "write 'https://x.example.com'"),
        ({"html": PAGE, "domain": "https://*.example.com"}, "which is not an origin"),
        ({"html": PAGE, "domain": "https://x.example.com/"}, "write 'https://x.example.com'"),
    ],
)
def test_a_wrong_option_of_a_widget_is_refused_with_what_to_write(
    options: Any, message: str
) -> None:
    app = App("bank")

    with pytest.raises((TypeError, ValueError)) as caught:
        app.widget("accounts", **options)

    assert message in str(caught.value)
    assert len(app.resources) == 0


@pytest.mark.parametrize(
    ("origin", "advice"),
    [
        ("api.example.com", "write 'https://api.example.com'"),
        ("http://api.example.com", "write 'https://api.example.com'"),
        ("https://api.example.com/", "write 'https://api.example.com'"),
        ("https://api.example.com/v1?x=1", "write 'https://api.example.com'"),
        ("https://API.example.com", "write 'https://api.example.com'"),
        ("//api.example.com:8443", "write 'https://api.example.com:8443'"),
        ("https://api.*.example.com", "write 'https://example.com' or 'https://*.example.com'"),
        ("https://user@example.com", "write 'https://example.com' or 'https://*.example.com'"),
        ("https://a.example.com https://b.example.com", "write 'https://example.com' or"),
        ("https://example.com; script-src *", "write 'https://example.com' or"),
        ("*", "write 'https://example.com' or 'https://*.example.com'"),
        ("https://*", "write 'https://example.com' or 'https://*.example.com'"),
        ("'self'", "write 'https://example.com' or 'https://*.example.com'"),
        ("data:", "write 'https://example.com' or 'https://*.example.com'"),
        ("", "write 'https://example.com' or 'https://*.example.com'"),
        ("https://example.com:99999999", "write 'https://example.com' or"),
        ("https://example.com:65536", "write 'https://example.com' or"),
        ("https://example.com:0", "write 'https://example.com' or"),
        ("https://example.com\n", "write 'https://example.com'"),
        ("ws://live.example.com", "write 'https://live.example.com'"),
    ],
)
@pytest.mark.parametrize("member", ["resources", "frames", "base_uris", "redirects"])
def test_a_csp_takes_origins_only(member: str, origin: str, advice: str) -> None:
    with pytest.raises(ValueError, match="which is not an origin") as caught:
        CSP(**{member: [origin]})

    assert f"{member} of CSP has {origin!r}" in str(caught.value)
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "origin",
    [
        "https://api.example.com",
        "https://api.example.com:8443",
        "https://*.example.com",
        "wss://live.example.com",
        "http://localhost:8000",
        "http://127.0.0.1:8000",
        "ws://localhost:8000",
    ],
)
def test_a_page_may_connect_to_origins_and_to_this_machine(origin: str) -> None:
    assert CSP(connect=[origin]).connect == (origin,)


def test_a_web_socket_is_for_connections_alone() -> None:
    with pytest.raises(ValueError, match=r"write 'https://live\.example\.com'"):
        CSP(resources=["wss://live.example.com"])


@pytest.mark.parametrize("origins", ["https://example.com", 7, None])
def test_a_csp_takes_lists(origins: Any) -> None:
    with pytest.raises(TypeError, match="should be a list of origins, such as"):
        CSP(connect=origins)


def test_origins_of_a_set_are_always_in_the_same_order() -> None:
    found = CSP(connect={"https://b.example", "https://a.example", "https://c.example"})

    assert found.connect == ("https://a.example", "https://b.example", "https://c.example")


def test_a_second_widget_of_one_name_is_refused() -> None:
    app = App("bank")
    app.widget("accounts", html=PAGE)

    with pytest.raises(ValueError, match="there is already a widget 'accounts'"):
        app.widget("accounts", html=PAGE)


def test_a_file_that_is_not_there_is_refused_with_the_place_where_it_was_looked_for(
    tmp_path: Path,
) -> None:
    """A relative path begins at the file that registers the widget."""
    missing, here = tmp_path / "accounts.html", Path(__file__).parent / "none.html"

    with pytest.raises(ValueError, match="'accounts': there is no file") as absolute:
        App("bank").widget("accounts", path=missing)
    with pytest.raises(ValueError, match="'accounts': there is no file") as relative:
        App("bank").widget("accounts", path="none.html")

    assert repr(str(missing)) in str(absolute.value)
    assert repr(str(here)) in str(relative.value)


@pytest.mark.parametrize(
    ("data", "message"), [(b"<p>\xff</p>", "is not UTF-8"), (b"text", "has no HTML in it")]
)
def test_a_file_that_is_no_page_is_refused(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "accounts.html"
    file.write_bytes(data)

    with pytest.raises(ValueError, match=message):
        App("bank").widget("accounts", path=file)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"widget": 7}, "widget=7 should be the name of a widget, such as 'accounts'"),
        ({"widget": ""}, "widget='' should be the name of a widget, such as 'accounts'"),
        ({"widget": "a", "colour": 1}, "no option is named 'colour'"),
    ],
)
def test_a_wrong_option_of_a_tool_is_refused(options: Any, message: str) -> None:
    app = App("bank")

    with pytest.raises(TypeError) as caught:
        app.add_tool(lambda: 1, name="one", **options)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"name": 7}, "name=7 of Shown should be the name of a widget, such as 'orders'"),
        ({"invoking": "x" * 65}, "should be a string of 1 to 64 characters"),
        ({"invoked": "x" * 65}, "should be a string of 1 to 64 characters"),
        ({"invoked": ""}, "invoked='' of Shown should be a string of 1 to 64 characters"),
        ({"visible_to": {"user"}}, "should be a set of 'model' and 'app', such as {'app'}"),
        ({"visible_to": set()}, "should be a set of 'model' and 'app'"),
        ({"visible_to": "app"}, "should be a set of 'model' and 'app'"),
    ],
)
def test_a_wrong_part_of_shown_is_refused(parts: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Shown(**parts)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"ui/resourceUri": "ui://x"}, "meta has 'ui/resourceUri'"),
        ({"openai/outputTemplate": "ui://widget/accounts.html"}, "meta has 'openai/outputTemplate"),
        ({"openai/widgetAccessible": True}, "meta has 'openai/widgetAccessible'"),
        ({"ui": {"visibility": ["app"]}}, "meta has 'ui.visibility'"),
        ({"ui": {"csp": {}}}, "meta has 'ui' with 'csp', which belongs to app.widget"),
        ({"ui": {"permissions": {}}}, "meta has 'ui' with 'permissions'"),
    ],
)
def test_meta_that_repeats_a_key_of_the_widget_is_refused(meta: Any, message: str) -> None:
    app = App("bank")

    with pytest.raises(ValueError, match="meta has") as caught:
        app.add_tool(lambda: 1, name="one", widget="accounts", meta=meta)

    assert message in str(caught.value)


def test_meta_with_other_keys_is_merged_and_left_as_it_is() -> None:
    app = App("bank")
    meta = {"ui": {"later": 1}, "example.com/x": 2}

    tool = app.add_tool(lambda: 1, name="one", widget="accounts", meta=meta)

    assert tool.settings.meta is not None
    assert tool.settings.meta["ui"] == {
        "later": 1,
        "resourceUri": "ui://widget/accounts.html",
        "visibility": ["model", "app"],
    }
    assert tool.settings.meta["example.com/x"] == 2
    assert meta == {"ui": {"later": 1}, "example.com/x": 2}


@pytest.mark.parametrize(
    "url", ["example.com/mcp", "http://example.com/mcp", "https://example.com", "https://a/b#c", 7]
)
def test_an_app_takes_the_whole_url_of_its_endpoint(url: Any) -> None:
    with pytest.raises(TypeError, match="should be the full URL of the MCP endpoint"):
        Access(url=url)
