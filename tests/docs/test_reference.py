"""The reference made from the code is up to date, and everything public has a line in it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest
from docsite.reference import scan
from docsite.reference.__main__ import FOLDER, pages
from docsite.reference.api_pages import entries, gaps
from docsite.reference.classes import Class, described
from docsite.reference.functions import split_docstring
from docsite.reference.guides import FLAG_GUIDES, GUIDES
from docsite.reference.plan import MET
from docsite.reference.plan import PAGES as API
from docsite.reference.sentences import META, NOT_META, NOT_OURS, READ, ROUTES, SENT, VARIABLES
from docsite.reference.wire_pages import code_sentences, flag_rows, parser_of, subcommands
from tests.test_public_names import PUBLIC

from answerback import App
from answerback.cli.program import COMMANDS
from answerback.contract import Contract
from answerback.core.metadata import KEYS
from answerback.rules.catalogue import RULES

WRITTEN = pages()
SENTENCES = "write a sentence into docsite/reference/sentences.py, then run `make reference`"


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_is_as_the_source_says(name: str) -> None:
    page = (FOLDER / name).read_text(encoding="utf-8")

    assert page == WRITTEN[name].rstrip() + "\n", "run `make reference`"


def test_a_sentence_of_a_docstring_explains_the_parameters_that_it_names() -> None:
    docstring = """Send *text*.

    *budget* is a number. It is in characters. With *raw*, nothing is cut. Any thread may call this.
    """

    text, meanings = split_docstring(docstring, {"text", "budget", "raw"})

    assert text == "Send `text`.\n\nAny thread may call this."
    assert meanings == {
        "text": "Send `text`.",
        "budget": "`budget` is a number. It is in characters.",
        "raw": "With `raw`, nothing is cut.",
    }


def test_the_api_has_no_other_pages() -> None:
    written = {name for name in WRITTEN if name.startswith("api/")}

    assert {f"api/{page.name}" for page in (FOLDER / "api").glob("*.md")} == written


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_of_a_module_is_on_a_page(module: str) -> None:
    shown = {name for page in API for home, name in entries(page) if home == module}

    assert shown == PUBLIC[module] - {"__version__"}


def test_a_page_has_only_public_names_and_those_that_users_meet() -> None:
    shown = {module for page in API for module, _ in entries(page)}

    assert shown - MET == PUBLIC.keys()


def test_every_name_option_method_and_attribute_has_a_sentence() -> None:
    assert gaps() == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_and_flag_of_a_command_has_a_sentence(command: str) -> None:
    parser = parser_of(command)
    parsers = [parser, *subcommands(parser).values()]

    rows = [row for each in parsers for row in flag_rows(each._actions, each)]

    assert [names for names, meaning in rows if not meaning] == []


def test_every_guide_belongs_to_an_option_or_a_flag() -> None:
    classes = [described(*entry) for page in API for entry in entries(page)]
    options = {
        f"{each.name}.{row.name}"
        for each in classes
        if isinstance(each, Class)
        for row in (*each.attributes, *(each.made.parameters if each.made else ()))
    }
    page = WRITTEN["command-line.md"]

    assert GUIDES.keys() - options == set()
    assert [flag for flag in FLAG_GUIDES if f"`{flag}" not in page] == []


def test_every_error_code_has_a_sentence() -> None:
    missing = [code for code, sentence in code_sentences().items() if not sentence]

    assert missing == [], "write a comment above its row in CODES, in errors.py"


def test_every_rule_has_a_page() -> None:
    assert {page.stem for page in (FOLDER / "rules").glob("AB*.md")} == RULES.keys()


def test_every_environment_variable_has_a_sentence() -> None:
    assert scan.variables() == VARIABLES.keys(), SENTENCES


def test_every_header_that_a_server_reads_or_sends_has_a_sentence() -> None:
    assert scan.headers() - READ.keys() - SENT.keys() == set(), SENTENCES


def test_every_route_has_a_sentence() -> None:
    assert scan.routes() - NOT_OURS - ROUTES.keys() == set(), SENTENCES


async def allowed_methods(app: App, path: str) -> set[str]:
    """The methods that a path has, as the refusal of another one says."""
    filled = re.sub(r"\{(\w+)\}", r"\1", path)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.asgi())) as client:
        answer = await client.put(f"http://127.0.0.1{filled}")
    return set(answer.headers["allow"].split(", "))


def test_a_route_has_the_methods_that_its_line_says() -> None:
    app = App("pages")

    @app.tool(task="optional")
    def name() -> None:
        """A tool whose path is that of the line."""

    shown = {path or part: set(methods.split(", ")) for part, (path, methods, _) in ROUTES.items()}
    # The others answer only browsers, or only with auth=.
    paths = [path for path in shown if path.startswith(("/functions", "/mcp", "/message", "/o"))]

    allowed = {path: asyncio.run(allowed_methods(app, path)) for path in paths}

    assert allowed == {path: shown[path] for path in paths}


def test_every_metadata_key_has_a_sentence() -> None:
    known = {key.name for key in KEYS}

    assert scan.meta_keys() - NOT_META - known - META.keys() == set(), SENTENCES


def test_every_setting_of_a_contract_has_a_line() -> None:
    page = (FOLDER / "api" / "contracts.md").read_text()

    assert set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) >= {*Contract.__struct_fields__}


def test_every_test_that_proves_a_promise_exists() -> None:
    page = (FOLDER / "promises.md").read_text()
    files = {
        Path(file).stem: (FOLDER / file).read_text() for file in re.findall(r"\((.*?\.py)\)", page)
    }
    proofs = re.findall(r"\[(test_\w+)\]\(.*?\): ((?:`test_\w+`(?:, )?)+)", page)

    assert len(proofs) > 30
    for file, names in proofs:
        for name in re.findall(r"test_\w+", names):
            assert f"def {name}(" in files[file], name
