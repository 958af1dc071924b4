"""The built site: its links, its search, its colours, and its texts for language models."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest
from docsite.build import BuildError, build, run_zensical
from docsite.for_models import llms
from docsite.link_check import broken_links
from docsite.nav import nav_pages
from docsite.source import BESIDE, DOCS, ROOT, for_zensical
from tests.widgets.browser_driver import Browser, chromium

QUESTIONS = {
    "reply too large": "guides/large-replies.html",
    "a task that takes minutes": "guides/tasks.html",
    "circuit breaker": "guides/resilience.html",
    "two machines share tasks": "guides/several-hosts.html",
    "prove that no record was changed": "guides/audit.html",
    "coming from fastmcp": "start/coming-from-fastmcp.html",
    "AB101": "reference/rules/AB101.html",
}
"""What a reader may type into the search, and a page that must be among the first results."""
OPEN_SHADOWS = """
const attachShadow = Element.prototype.attachShadow;
Element.prototype.attachShadow = function (options) {
  return attachShadow.call(this, { ...options, mode: "open" });
};
"""
"""Lets the test see into the search, which hides its elements from other scripts."""
RESULTS = """[...document.querySelectorAll("body > div")]
  .flatMap((part) => [...(part.shadowRoot?.querySelectorAll("a") ?? [])])
  .map((link) => link.href)"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, which all processes of pytest-xdist share."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "site").exists():
            build(shared / "site")
    return shared / "site"


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    """Where a plain server of static files shows the site."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        opened.before(OPEN_SHADOWS)
        yield opened


def pages() -> list[str]:
    return sorted([*(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")), *BESIDE.values()])


def test_the_navigation_has_every_page_once() -> None:
    assert sorted(nav_pages()) == pages()


def test_the_site_has_every_page_and_a_markdown_twin_of_it(site: Path) -> None:
    html = [page.removesuffix(".md") + ".html" for page in pages()]

    assert [name for name in [*html, *pages()] if not (site / name).is_file()] == []


def test_no_link_of_the_site_is_broken(site: Path) -> None:
    assert broken_links(site) == []


def test_a_broken_link_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">no page</a><a href="#x">no anchor</a><img src="c.png">'
        '<script src="https://cdn.example/x.js"></script><a href="https://example.com">fine</a>'
    )
    (tmp_path / "a.md").write_text(
        "[`fine`](a.md) `[code](c.md)` [no page](b.md)\n\n```\n[code](c.md)\n```\n"
    )
    for name in ("llms.txt", "llms-full.txt"):
        (tmp_path / name).write_text("")

    assert broken_links(tmp_path) == [
        "a.html: b.html has no target",
        "a.html: #x has no anchor #x",
        "a.html: c.png has no target",
        "a.html: loads https://cdn.example/x.js from another host",
        "a.md: b.md has no target",
    ]


def test_a_broken_link_in_a_page_is_shown_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\nSee [tools](tols.md).\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: Trial\n")

    with pytest.raises(BuildError) as caught:
        run_zensical(tmp_path)

    message = str(caught.value)
    assert "index.md:3:13" in message
    assert "See [tools](tols.md)." in message
    assert "Traceback" not in message


def test_llms_txt_leads_to_the_pages_that_an_unlisted_page_links_to() -> None:
    first = "# Home\n\nSummary.\n\nDetails.\n\n## All pages\n"
    page = "# New\n\nSee [tools](../start/tools.md).\n"

    text = llms({"index.md": first, "guides/new.md": page})

    assert "- [New](guides/new.md): See [tools](start/tools.md).\n" in text


def test_code_beside_code_and_bars_in_tables_are_shown_as_in_a_repository_viewer() -> None:
    page = "```python\n1\n```\n```text\n1\n```\n\n| type |\n|---|\n| `int \\| None` \\| x |\n"

    assert for_zensical(page) == (
        "```python\n1\n```\n\n```text\n1\n```\n\n| type |\n|---|\n| `int | None` \\| x |\n"
    )


def test_llms_txt_has_the_form_of_llmstxt_org_and_every_page(site: Path) -> None:
    text = (site / "llms.txt").read_text()

    assert re.match(r"# Answerback\n\n> One typed Python function\. .+\n\n\w", text)
    shelves = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert shelves == ["Start", "Guides", "Reference", "Contributors", "Optional"]
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+$", text, re.MULTILINE)
    assert sorted([*listed, "index.md"]) == pages()


def test_llms_full_txt_has_the_text_of_every_page(site: Path) -> None:
    text = (site / "llms-full.txt").read_text()

    assert re.findall(r"^<!-- (\S+\.md) -->$", text, re.MULTILINE) == nav_pages()
    titles = [(site / page).read_text().partition("\n")[0] for page in pages()]
    assert [title for title in titles if f"\n{title}\n" not in text] == []


@pytest.mark.parametrize("where", ["served", "opened from a disk"])
def test_the_search_answers_questions(browser: Browser, site: Path, url: str, where: str) -> None:
    first = f"{url}/index.html" if where == "served" else (site / "index.html").as_uri()
    browser.open(first)
    browser.viewport(1280, 800)
    browser.click("button.md-search__button")

    found = {question: results(browser, question) for question in QUESTIONS}

    missing = {
        question: found[question]
        for question, page in QUESTIONS.items()
        if not any(page in result for result in found[question][:3])
    }
    assert missing == {}
    assert browser.errors() == []


def results(browser: Browser, question: str) -> list[str]:
    """The addresses that the search shows for *question*, best first."""
    # The results of the question before are shown until those of this one are found.
    browser.fill("input[role=combobox]", "")
    browser.until(f"{RESULTS}.length === 0")
    browser.fill("input[role=combobox]", question)
    return list(browser.until(f"{RESULTS}.length && {RESULTS}"))


def test_a_page_loads_nothing_from_another_host(browser: Browser, url: str) -> None:
    asked: list[str] = []
    for page in ("index.html", "guides/console.html", "reference/wires.html"):
        browser.open(f"{url}/{page}")
        browser.until("document.readyState === 'complete'")
        asked += browser.requests()

    assert len(asked) > 10
    assert [each for each in asked if not each.startswith((f"{url}/", "data:", "blob:"))] == []


def test_the_site_is_shown_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the first page")
    program = "import pathlib, sys; from docsite.serve import serve; "
    program += f"sys.exit(serve(pathlib.Path({str(tmp_path)!r}), 0))"
    command = [sys.executable, "-c", program]

    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        shown = server.stdout.readline()
        seen = httpx.get(shown.split()[0]).text
        server.stdout.readline()
        server.send_signal(signal.SIGINT)
        rest = server.stdout.read()

    assert seen == "the first page"
    assert shown.endswith(" shows the documentation.\n")
    assert (rest.strip(), server.returncode) == ("", 0)


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_page_follows_the_colours_of_the_system(browser: Browser, url: str, colours: str) -> None:
    browser.open("about:blank")
    browser.scheme(colours)
    browser.open(f"{url}/guides/console.html")

    background = browser.until("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", background)[:3])) / 3
    assert (brightness > 128) == (colours == "light")
    shown = browser.until("document.querySelector('article picture img').currentSrc")
    assert shown.endswith(f"console-call-{colours}.png")
    assert browser.run("document.querySelector('article picture img').naturalWidth > 0")
    assert browser.axe("critical", "serious") == []


def test_the_switch_changes_the_colours_of_the_page_and_of_its_pictures(
    browser: Browser, url: str
) -> None:
    browser.open("about:blank")
    browser.scheme("light")
    browser.open(f"{url}/guides/console.html")

    # It goes from the system's colours to light ones, and then to dark ones.
    for label in ("Switch to light mode", "Switch to dark mode"):
        browser.click(f"label[title='{label}']")

    assert browser.until("document.body.dataset.mdColorScheme === 'slate'")
    picture = "document.querySelector('article picture img').currentSrc"
    assert browser.until(f"{picture}.endsWith('console-call-dark.png')")
