"""The HTML that hosts get: a whole page, with the bridge as its first script."""

from __future__ import annotations

import asyncio

import pytest
from tests.widgets.mcp_requests import content

from answerback import App


def html(source: str, *, bridge: bool) -> str:
    app = App("bank")
    app.widget("accounts", html=source, bridge=bridge)
    text = asyncio.run(content(app, "accounts"))["text"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("source", "before"),
    [
        (
            "<!doctype html><html><head><title>a</title></head></html>",
            "<!doctype html><html><head>",
        ),
        ("<!DOCTYPE html>\n<HTML lang='en'>\n<HEAD id=h>\n</HEAD>", "<HEAD id=h>"),
        ("<!doctype html><!-- <head> --><html><head></head>", "--><html><head>"),
        ("<!doctype html><html lang='en'><body></body></html>", "<html lang='en'>"),
        ("<!doctype html><html><header>a</header></html>", "<html>"),
        ("<!doctype html><p>a", "<!doctype html>"),
        ("<p>a", "<!doctype html>"),
    ],
)
def test_the_bridge_is_the_first_script_of_the_head(source: str, before: str) -> None:
    text = html(source, bridge=True)

    start = text.index("<script>")
    assert text[:start].endswith(before)
    assert text.index("</script>") > start
    assert text.count("<script>") == 1


def test_a_page_without_the_bridge_stays_as_it_is_but_gets_a_doctype() -> None:
    whole = "<!doctype html><html><head></head></html>"

    assert html(whole, bridge=False) == whole
    assert html("<p>a", bridge=False) == "<!doctype html>\n<p>a"


def test_the_bridge_is_there_by_default() -> None:
    app = App("bank")
    app.widget("accounts", html="<p>a")

    assert asyncio.run(content(app, "accounts"))["text"] == html("<p>a", bridge=True)
