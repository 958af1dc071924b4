"""`answerback port` turns a server of FastMCP or the official SDK into an App."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from answerback.cli.program import main
from answerback.cli.target import load

HEAD = "from fastmcp import FastMCP, Context\nmcp = FastMCP('x')\n"
OUR_HEAD = "from answerback import App, Context\nmcp = App('x')\n"


def port(folder: Path, text: str, name: str = "server.py") -> str:
    """Port a file, and return its new text."""
    file = folder / name
    file.write_text(dedent(text))
    assert main(["port", "--write", str(file)]) == 0
    return file.read_text()


def notes(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The notes on stderr without the file's name, and the summary last."""
    return [line.rpartition("server.py:")[2] for line in capsys.readouterr().err.splitlines()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from fastmcp import FastMCP", "from answerback import App"),
        ("from mcp.server.fastmcp import FastMCP", "from answerback import App"),
        ("from mcp.server import MCPServer", "from answerback import App"),
        ("from fastmcp import FastMCP as Server", "from answerback import App as Server"),
        (
            "from fastmcp import FastMCP\nfrom fastmcp.exceptions import ToolError",
            "from answerback import App, ToolError",
        ),
        (
            "from mcp.types import TextContent, ToolAnnotations",
            "from mcp.types import TextContent",
        ),
        (
            "from fastmcp import FastMCP\nclass App: ...\nFastMCP('x')",
            "from answerback import App as FastMCP\nclass App: ...\nFastMCP('x')",
        ),
        (
            "if True:\n    from fastmcp import Context\n    from mcp.types import ToolAnnotations",
            "if True:\n    from answerback import Context",
        ),
        (
            "try:\n    from mcp.types import ToolAnnotations\nfinally: ...",
            "try:\n    pass\nfinally: ...",
        ),
        (
            "import fastmcp\nmcp = fastmcp.FastMCP('x')",
            "from answerback import App\nimport fastmcp\nmcp = App('x')",
        ),
    ],
)
def test_imports_become_ours(before: str, after: str, tmp_path: Path) -> None:
    assert port(tmp_path, f"{before}\n") == f"{after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("FastMCP('x', 'Be brief.')", "App('x', description='Be brief.')"),
        ("FastMCP('x', instructions='Be brief.')", "App('x', description='Be brief.')"),
        ("FastMCP(name='x', version='1')", "App(name='x', version='1')"),
        ("FastMCP('x', port=1, stateless_http=True)", "App('x')"),
        ("FastMCP('x', host='a', lifespan=life)", "App('x', lifespan=life)"),
        ("FastMCP(dependencies=['redis'],)", "App()"),
        ("FastMCP(\n    'x',\n    debug=True,\n)", "App(\n    'x',\n)"),
        ("FastMCP('x', auth=verifier)", "App('x', auth=verifier)"),
    ],
)
def test_options_of_the_server_become_ours(before: str, after: str, tmp_path: Path) -> None:
    ported = port(tmp_path, f"from fastmcp import FastMCP\n\nmcp = {before}\n")

    assert ported == f"from answerback import App\n\nmcp = {after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tool", "tool"),
        ("tool()", "tool()"),
        ("tool('add')", "tool(name='add')"),
        ("tool('add', 'Add')", "tool(name='add', title='Add')"),
        ("tool(annotations={'readOnlyHint': True})", "tool(read_only=True)"),
        (
            "tool(annotations=ToolAnnotations(title='A', openWorldHint=False))",
            "tool(title='A', open_world=False)",
        ),
        ("tool(title='B', annotations=ToolAnnotations(title='A'))", "tool(title='B')"),
        ("tool(annotations=SAFE, tags={'a'})", "tool(idempotent=True, tags={'a'})"),
        ("tool(structured_output=False)", "tool(values=Values(structured=False))"),
        ("tool(output_schema=None)", "tool(values=Values(structured=False))"),
        ("tool(structured_output=True)", "tool()"),
        ("tool(enabled=True, name='a')", "tool(name='a')"),
        ("tool(task=True)", "tool(task='optional')"),
        ("tool(run_in_thread=False)", "tool(inline=True)"),
        ("resource('a://b', mime_type='text/html')", "resource('a://b', mime='text/html')"),
        ("resource(uri='a://b')", "resource('a://b')"),
        ("prompt('greet')", "prompt(name='greet')"),
        (
            "custom_route('/a', methods=['GET'], include_in_schema=False)",
            "route('/a', methods=['GET'])",
        ),
    ],
)
def test_options_of_decorators_become_ours(before: str, after: str, tmp_path: Path) -> None:
    ported = port(
        tmp_path,
        f"{HEAD}from mcp.types import ToolAnnotations\n"
        "SAFE = ToolAnnotations(idempotentHint=True)\n"
        f"@mcp.{before}\ndef f(): ...\n",
    )

    assert ported.endswith(f"\n@mcp.{after}\ndef f(): ...\n")
    assert "ToolAnnotations" not in ported
    assert ("from answerback.options import Values" in ported) == ("Values" in after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("await ctx.info('a')", "ctx.log('a', \"info\")"),
        ("await ctx.error(message='a')", "ctx.log(data='a', level=\"error\")"),
        ("await ctx.warning('a', logger_name='b')", "ctx.log('a', \"warning\", logger='b')"),
        ("x = await ctx.info('a')", "x = await ctx.log('a', \"info\")"),
        ("await ctx.log('debug', 'a')", "ctx.log('a', \"debug\")"),
        ("await ctx.log('a', level='info')", "ctx.log('a', level='info')"),
        ("await ctx.report_progress(1, total=2)", "ctx.progress(1, total=2)"),
        ("ctx.request_context.lifespan_context.db", "ctx.state.db"),
        ("self.ctx.request_context.lifespan_context", "self.ctx.state"),
        ("ctx.lifespan_context['db']", "ctx.state['db']"),
        ("ctx.request_id + ctx.session_id", "ctx.request.id + ctx.request.session"),
        ("ctx.request_context.request_id", "ctx.request.id"),
        ("await ctx.list_roots()", "await ctx.roots()"),
        ("await ctx.elicit('a', response_type=str)", "await ctx.elicit('a', form=str)"),
    ],
)
def test_members_of_the_context_become_ours(before: str, after: str, tmp_path: Path) -> None:
    function = "@mcp.tool\nasync def f(self, ctx: Context):\n"

    ported = port(tmp_path, f"{HEAD}{function}    {before}\n")

    assert ported == f"{OUR_HEAD}{function}    {after}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("run()", "run()"),
        ("run(transport='stdio')", "run()"),
        ("run('stdio')", "run()"),
        ("run(transport='sse')", 'run(["serve"])'),
        ("run(transport='http', port=8000)", 'run(["serve", "--port", "8000"])'),
        ("run(transport='http', host=HOST)", 'run(["serve", "--host", str(HOST)])'),
        ("run(transport=kind)", 'run(["mcp"] if kind == "stdio" else ["serve"])'),
        ("mount(other)", "include(other)"),
        ("mount(other, namespace='jira')", 'include(other, prefix="jira_")'),
        ("import_server(other, prefix='jira')", 'include(other, prefix="jira_")'),
        ("streamable_http_app()", "asgi()"),
        ("http_app(path='/mcp')", "asgi()"),
    ],
)
def test_methods_of_the_server_become_ours(before: str, after: str, tmp_path: Path) -> None:
    assert port(tmp_path, f"{HEAD}mcp.{before}\n") == f"{OUR_HEAD}mcp.{after}\n"


def test_a_program_that_reads_its_own_arguments_goes_on_doing_so(tmp_path: Path) -> None:
    ported = port(tmp_path, f"import argparse\n{HEAD}mcp.run()\n")

    assert ported == f'import argparse\n{OUR_HEAD}mcp.run(["mcp"])\n'


def test_images_become_ours(tmp_path: Path) -> None:
    ported = port(
        tmp_path,
        "from fastmcp.utilities.types import Image\n"
        "a = Image(data=b'', format='png')\nb = Image(path='a.png')\nc = Image(b'', format=kind)\n",
    )

    assert ported == (
        "from answerback import Image\n"
        "a = Image(data=b'', mime=\"image/png\")\nb = Image.open('a.png')\n"
        "c = Image(b'', mime=f\"image/{kind}\")\n"
    )


def test_the_context_of_the_running_call_becomes_ours(tmp_path: Path) -> None:
    ported = port(tmp_path, f"{HEAD}def helper():\n    return mcp.get_context().request_id\n")

    assert ported == (
        "from answerback import App, Context, get_context\nmcp = App('x')\n"
        "def helper():\n    return get_context().request.id\n"
    )


def test_comments_layout_and_line_ends_stay(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    text = (
        "# coding: latin-1\r\nfrom fastmcp import FastMCP  # the framework\r\n\x0c\r\n"
        "mcp = FastMCP( 'blåbær' ,  # its name\r\n\tinstructions = 'Være kort' )\r\n"
    )
    file.write_bytes(text.encode("latin-1"))

    assert main(["port", "--write", str(file)]) == 0

    assert file.read_bytes().decode("latin-1") == text.replace(
        "from fastmcp import FastMCP", "from answerback import App"
    ).replace("FastMCP(", "App(").replace("instructions", "description")


def test_the_files_of_a_folder_are_ported_together(tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text("from fastmcp import FastMCP\nmcp = FastMCP('x')\n")
    (tmp_path / "main.py").write_text("from common import mcp\nmcp.run(transport='http')\n")
    (tmp_path / "other.py").write_text("import os\nrunner.run(transport='http')\n")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "their.py").write_text("from fastmcp import FastMCP\n")

    assert main(["port", "--write", str(tmp_path)]) == 0

    assert (tmp_path / "main.py").read_text() == 'from common import mcp\nmcp.run(["serve"])\n'
    assert "transport='http'" in (tmp_path / "other.py").read_text()
    assert "FastMCP" in (tmp_path / ".venv" / "their.py").read_text()


def test_without_write_a_diff_is_shown_and_the_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.py").write_text(f"{HEAD}\n@mcp.tool\ndef f(): ...")

    status = main(["port", "server.py"])

    shown = capsys.readouterr()
    assert status == 0
    assert Path("server.py").read_text().startswith(HEAD)
    assert shown.out.splitlines()[:4] == [
        "--- a/server.py",
        "+++ b/server.py",
        "@@ -1,5 +1,5 @@",
        "-from fastmcp import FastMCP, Context",
    ]
    assert shown.err == "1 file to change; --write changes it\n"
    applied = subprocess.run(["git", "apply"], input=shown.out, text=True, check=False)
    assert applied.returncode == 0
    assert Path("server.py").read_text() == f"{OUR_HEAD}\n@mcp.tool\ndef f(): ..."


def test_a_place_for_a_person_is_named_with_its_line_in_the_file_as_it_is_now(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "from fastmcp import FastMCP, Context\nfrom mcp.types import ToolAnnotations\n"
        "mcp = FastMCP('x', middleware=[a])\n@mcp.tool\nasync def f(ctx: Context):\n"
        "    ctx.session.go()\n    raise ValueError('no')\nmcp.add_prompt(f)\n"
    )
    (tmp_path / "server.py").write_text(text)
    main(["port", str(tmp_path / "server.py")])
    before = notes(capsys)

    port(tmp_path, text)

    after = notes(capsys)
    assert [note.split(":")[0] for note in before[:-1]] == ["3", "6", "7", "8"]
    assert [note.split(":")[0] for note in after[:-1]] == ["2", "5", "6", "7"]
    assert before[3] == "8: add_prompt stays: write app.prompt(fn)"
    assert after[-1] == "1 file changed, 4 places to look at; run the tests, then: git diff"


def test_a_low_level_server_is_left_to_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "from mcp.server import Server\napp = Server('x')\n"

    assert port(tmp_path, text) == text
    assert notes(capsys) == [
        "1: mcp.server.Server stays: write one typed function for each tool; "
        "the page coming-from-the-sdk shows how",
        "nothing can be changed without you, 1 place to look at",
    ]


@pytest.mark.parametrize("text", ["", "import os\n\n\ndef run(): ...\n", OUR_HEAD])
def test_a_file_with_nothing_to_port_says_so(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert port(tmp_path, text) == text
    assert notes(capsys) == ["nothing to port: no code of FastMCP or the official SDK"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"def f(:\n", "is not Python: invalid syntax in line 1"),
        (b"\xff\xfe\n", "is not Python: "),
        (b"a = '\0'\n", "is not Python: "),
        (None, "there is no file or folder"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_usage_error(
    content: bytes | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "server.py"
    if content is not None:
        file.write_bytes(content)

    status = main(["port", str(file)])

    assert status == 2
    assert message in capsys.readouterr().err


SHOP = '''
from dataclasses import dataclass

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from mcp.types import ToolAnnotations

mcp = FastMCP("shop", instructions="Prices are in euros.")


@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
async def price(item: str, ctx: Context, count: int = 1) -> float:
    """The price of some items."""
    await ctx.info(f"{count} of {item}")
    if item != "tea":
        raise ToolError(f"there is no {item}")
    return 2.5 * count


if __name__ == "__main__":
    mcp.run()
'''


def test_a_ported_server_answers(tmp_path: Path) -> None:
    port(tmp_path, SHOP)

    app = load(str(tmp_path / "server.py"))
    reply = asyncio.run(app.call("price", item="tea", count=2))
    refused = asyncio.run(app.call("price", item="milk"))

    assert reply.data == 5.0
    assert refused.error is not None
    assert refused.error.message == "there is no milk"
    assert app.tools["price"].settings.read_only is True


def test_help_says_what_the_command_does() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "answerback", "port", "--help"], capture_output=True, text=True
    )

    assert shown.returncode == 0
    assert "usage: answerback port [--write] PATH…" in shown.stdout
    assert "answerback port server.py | git apply" in shown.stdout
