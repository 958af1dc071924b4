import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("tools")


def test_values_are_read_by_the_type_of_their_argument(answerback: Run) -> None:
    added = answerback("call", "tools.py", "add", "x=7", "y=3")
    described = answerback(
        "call", "tools.py", "describe", "tags=a,b", "when=2026-01-01", "loud=yes"
    )

    assert added.stdout == '{"result":10}\n'
    assert json.loads(described.stdout) == {"result": "['a', 'b'] 2026-01-01 True big"}
    assert (added.exit, described.exit) == (0, 0)


def test_a_default_need_not_be_given(answerback: Run) -> None:
    assert answerback("call", "tools.py", "add", "x=7").stdout == '{"result":8}\n'


def test_a_file_that_runs_its_own_app_takes_the_same_words(tools: Path) -> None:
    command = [sys.executable, str(tools), "call", "add", "x=7", "y=3"]

    result = subprocess.run(command, capture_output=True, check=True)

    assert result.stdout.endswith(b'{"result":10}\n')


def test_options_may_stand_between_the_arguments(answerback: Run) -> None:
    done = answerback("call", "--dialect", "mcp", "tools.py", "add", "x=7", "--json", "{}", "y=3")

    assert json.loads(done.stdout)["structuredContent"] == {"result": 10}


def test_an_argument_can_be_what_a_file_holds(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))

    done = answerback("call", "tools.py", "size_of", "content=@data.bin")

    assert done.stdout == '{"result":256}\n'


def test_an_argument_can_be_what_comes_on_stdin(answerback: Run) -> None:
    done = answerback("call", "tools.py", "echo", "text=-", stdin="Tromsø".encode())

    assert json.loads(done.stdout) == {"result": "Tromsø"}


def test_a_tool_that_reads_stdin_reads_nothing(answerback: Run) -> None:
    done = answerback("call", "tools.py", "read_stdin", stdin=b"not for the tool")

    assert done.stdout == '{"result":""}\n'


@pytest.mark.parametrize(
    ("word", "text"),
    [("text=@@file", "@file"), ("text=a=b", "a=b"), ("text=", ""), ("text=-1", "-1")],
)
def test_a_plain_text_stays_what_it_is(answerback: Run, word: str, text: str) -> None:
    done = answerback("call", "tools.py", "echo", word)

    assert json.loads(done.stdout) == {"result": text}


@pytest.mark.parametrize(
    "arguments",
    [
        ("size_of", "content=@nowhere.bin"),
        ("size_of", "--json", "@nowhere.json"),
        ("describe", "tags=-", "when=-"),
        ("add", "--json", "-", "x=-"),
        ("add", "7"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(answerback: Run, arguments: list[str]) -> None:
    done = answerback("call", "tools.py", *arguments)

    assert done.exit == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_value_without_a_name_is_told_how_to_be_given(answerback: Run) -> None:
    assert "write x=7" in answerback("call", "tools.py", "add", "7").stderr
    assert "write x=7" in answerback("call", "tools.py", "add", "=7").stderr


@pytest.mark.parametrize("words", [("--x=7",), ("-x=7",), ("--x", "7")])
def test_an_argument_in_the_form_of_an_option_is_told_how_to_be_given(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", "tools.py", "add", *words)

    assert done.exit == 2
    assert f"{words[0]} is not an option; write an argument as x=value\n" in done.stderr


def test_json_is_the_whole_argument_object(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "given.json").write_text('{"x": 7, "y": 3}')

    given = answerback("call", "tools.py", "add", "--json", '{"x": 7, "y": 3}')
    from_file = answerback("call", "tools.py", "add", "--json", "@given.json")
    from_stdin = answerback("call", "tools.py", "add", "--json", "-", stdin=b'{"x": 7, "y": 3}')

    assert given.stdout == from_file.stdout == from_stdin.stdout == '{"result":10}\n'


def test_json_may_be_saved_as_windows_saves_it(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "given.json").write_bytes(b'\xef\xbb\xbf{"x": 7,\r\n"y": 3}\r\n')

    done = answerback("call", "tools.py", "add", "--json", "@given.json")

    assert done.stdout == '{"result":10}\n'


def test_a_word_changes_one_argument_of_the_json(answerback: Run) -> None:
    done = answerback("call", "tools.py", "add", "--json", '{"x": 7, "y": 3}', "y=4")

    assert done.stdout == '{"result":11}\n'


@pytest.mark.parametrize(
    ("whole", "said"),
    [
        ("{not json", "--json is not JSON: expecting property name … at line 1, column 2"),
        ('{"x": 7', "--json is not JSON: expecting ',' delimiter at line 1, column 8"),
        ("@broken.json", "--json @broken.json is not JSON: expecting value at line 2, column 8"),
        ("-", "--json - is not JSON: expecting value at line 1, column 1"),
        ("{" * 300, "--json is not JSON: "),
    ],
)
@pytest.mark.parametrize("word", [(), ("x=1",)])
def test_json_that_is_broken_is_told_by_its_flag_and_the_place(
    answerback: Run, tmp_path: Path, whole: str, said: str, word: tuple[str, ...]
) -> None:
    (tmp_path / "broken.json").write_text('{\n  "x": seven}\n')

    done = answerback("call", "tools.py", "add", "--json", whole, *word, "--dialect", "envelope")

    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.exit, error["code"]) == (2, "INVALID_JSON")
    for part in said.split("…"):
        assert part in error["message"]


def test_a_person_sees_where_json_breaks(on_a_terminal: Run) -> None:
    broken = '{"a": "' + "b" * 80 + '", c: "' + "d" * 80 + '"}'

    seen = on_a_terminal("call", "tools.py", "add", "--json", broken)

    told, shown, mark = seen.stdout.splitlines()[-3:]
    assert told.endswith("(INVALID_JSON)")
    assert shown[mark.index("^")] == "c"
    assert len(shown) < 80


@pytest.mark.parametrize("whole", ["[1]", "7", '{"y": 1e999}'])
@pytest.mark.parametrize("word", [(), ("x=1",)])
def test_json_that_is_no_object_is_the_pipelines_to_refuse(
    answerback: Run, whole: str, word: tuple[str, ...]
) -> None:
    done = answerback("call", "tools.py", "add", "--json", whole, *word)

    assert done.exit == 2
    assert "error" in json.loads(done.stderr.splitlines()[-1])


def test_a_list_can_be_the_lines_of_a_file(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "tags.txt").write_text("a\nb, c\n")

    done = answerback("call", "tools.py", "describe", "tags=@tags.txt", "when=2026-01-01")

    assert json.loads(done.stdout) == {"result": "['a', 'b, c'] 2026-01-01 False big"}


def test_nothing_that_is_printed_reaches_stdout(answerback: Run) -> None:
    done = answerback("call", "tools.py", "noisy")

    assert done.stdout == '{"result":"quiet"}\n'
    for words in ("as the module is loaded", "printed\n", "to fd 1", "by a subprocess"):
        assert words in done.stderr


def test_a_lone_image_is_piped_as_its_bytes(tools: Path) -> None:
    command = [sys.executable, "-m", "answerback", "call", str(tools), "picture"]

    result = subprocess.run(command, capture_output=True, check=True)

    assert result.stdout == bytes(range(256))


@pytest.mark.parametrize(
    ("tool", "exit_status", "message"),
    [("missing", 66, "no such city"), ("limited", 75, "slow down"), ("nope", 2, "Function not")],
)
def test_an_error_goes_to_stderr_with_the_exit_status_of_its_code(
    answerback: Run, tool: str, exit_status: int, message: str
) -> None:
    done = answerback("call", "tools.py", tool)

    assert done.exit == exit_status
    assert done.stdout == ""
    assert message in json.loads(done.stderr.splitlines()[-1])["error"]


def test_an_exception_is_masked(answerback: Run) -> None:
    done = answerback("call", "tools.py", "secret", "--dialect", "envelope")

    last = done.stderr.splitlines()[-1]
    assert json.loads(last)["error"]["code"] == "TOOL_EXECUTION_ERROR"
    assert "hunter2" not in last
    assert done.exit == 70


@pytest.mark.parametrize("dialect", ["rest", "mcp", "envelope", "problem"])
def test_a_dialect_can_be_asked_for(answerback: Run, dialect: str) -> None:
    success = answerback("call", "tools.py", "add", "x=1", "--dialect", dialect)
    error = answerback("call", "tools.py", "missing", "--dialect", dialect)

    members = {
        "rest": ("result", "error"),
        "mcp": ("structuredContent", "isError"),
        "envelope": ("success", "success"),
        "problem": ("result", "title"),
    }[dialect]
    assert members[0] in json.loads(success.stdout)
    assert members[1] in json.loads(error.stderr.splitlines()[-1])


def test_a_tool_or_argument_that_is_near_is_named(answerback: Run) -> None:
    tool = answerback("call", "tools.py", "ad", "x=1")
    argument = answerback("call", "tools.py", "describe", "tag=a", "when=2026-01-01")
    loud = answerback("call", "tools.py", "ADD", "x=1")

    assert "'add'" in tool.stderr
    assert "'add'" in loud.stderr
    assert "tags" in argument.stderr
    assert (tool.exit, argument.exit) == (2, 2)


def test_all_wrong_arguments_are_named(answerback: Run) -> None:
    done = answerback("call", "tools.py", "describe", "when=soon", "size=huge", "wrong=1")

    message = json.loads(done.stderr.splitlines()[-1])["error"]
    for name in ("when", "size", "wrong", "tags"):
        assert name in message


def test_without_a_name_the_tools_are_shown(answerback: Run) -> None:
    done = answerback("call", "tools.py")

    assert done.exit == 2
    assert "add x=INTEGER [y=INTEGER]" in done.stderr


def test_help_for_a_tool_shows_what_it_takes(answerback: Run) -> None:
    done = answerback("call", "tools.py", "add", "--help")

    assert done.exit == 0
    assert done.stdout == (
        "usage: answerback call tools.py add x=INTEGER [y=INTEGER]\n\n"
        "Add two numbers.\n\nMore about it.\n\n"
        "arguments:\n"
        "  x  integer, required   The first number.\n"
        "  y  integer, default 1  The second number.\n\n"
        "example:\n"
        "  answerback call tools.py add x=1\n"
    )


def test_help_for_bytes_says_that_text_is_taken_as_well_as_a_file(answerback: Run) -> None:
    done = answerback("call", "tools.py", "size_of", "--help")

    assert "size_of content=TEXT|@FILE\n" in done.stdout
    assert "  content  text or @file, required\n" in done.stdout
    assert done.stdout.endswith("size_of content=@file\n")


OBJECTS = """
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from answerback import App

app = App("objects")

@dataclass
class City:
    name: str
    people: int

@dataclass
class Tree:
    twigs: list["Tree"]
    above: "Tree | None"

@app.tool
def move(city: City, to: tuple[int, str], past: list[City] = []) -> str:
    return f"{city} {to} {past}"

@app.tool
def grow(tree: Tree, by: Annotated[int, Meta(gt=4)], most: Annotated[float, Meta(le=0.5)]) -> str:
    return f"{tree} {by} {most}"
"""


@pytest.fixture
def objects(tmp_path: Path) -> None:
    (tmp_path / "objects.py").write_text(OBJECTS)


@pytest.mark.usefixtures("objects")
def test_help_for_objects_names_their_members(answerback: Run) -> None:
    done = answerback("call", "objects.py", "move", "--help")

    assert done.stdout == (
        "usage: answerback call objects.py move city=OBJECT to=LIST [past=LIST-OF-OBJECT]\n\n"
        "arguments:\n"
        "  city  object with name, people, required\n"
        "  to    list of integer, text, required\n"
        "  past  list of object with name, people, default []\n\n"
        "example:\n"
        """  answerback call objects.py move 'city={"name":"text","people":1}' to=1,text\n"""
    )


@pytest.mark.parametrize(
    ("file", "tool"),
    [
        *(("tools.py", tool) for tool in ("add", "describe", "echo", "later")),
        ("objects.py", "move"),
        ("objects.py", "grow"),
    ],
)
@pytest.mark.usefixtures("objects")
def test_the_example_in_a_tools_help_works(answerback: Run, file: str, tool: str) -> None:
    line = answerback("call", file, tool, "--help").stdout.splitlines()[-1]

    done = answerback(*shlex.split(line)[1:])

    assert done.exit == 0, done.stderr


def test_help_without_a_tool_is_about_the_command(answerback: Run) -> None:
    for arguments in (("call", "--help"), ("call", "tools.py", "-h")):
        done = answerback(*arguments)

        assert done.exit == 0
        assert "--dialect" in done.stdout


def test_without_a_target_one_is_asked_for(answerback: Run) -> None:
    done = answerback("call")

    assert done.exit == 2
    assert "calculator.py" in done.stderr


@pytest.mark.parametrize("words", [("add",), ("add", "x=1", "y=2 3")])
def test_a_tool_without_a_target_is_shown_where_it_goes(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", *words)

    assert done.exit == 2
    assert done.stderr.startswith("error: there is no file or module 'add'; ")
    assert done.stderr.endswith(f": answerback call calculator.py {shlex.join(words)}\n")


@pytest.mark.parametrize("words", [("nope.py", "x=1"), ("nope", "add", "x=1")])
def test_a_target_that_is_not_there_is_all_that_is_wrong(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", *words)

    assert done.exit == 2
    assert "call calculator.py" not in done.stderr


def test_an_argument_where_the_tool_should_be_shows_the_tools(answerback: Run) -> None:
    done = answerback("call", "tools.py", "x=1")

    assert done.exit == 2
    assert "error: name the tool to call\n\nadd x=INTEGER" in done.stderr


def test_a_plain_tool_brings_in_nothing_heavy(answerback: Run) -> None:
    """Contract: start-up is what one who calls from a shell feels most."""
    done = answerback("call", "tools.py", "modules")

    assert json.loads(done.stdout) == {"result": []}


def test_an_async_tool_is_run(answerback: Run) -> None:
    assert answerback("call", "tools.py", "later", "x=1").stdout == '{"result":2}\n'


def test_what_a_tool_logs_goes_to_stderr_and_its_progress_is_for_terminals(answerback: Run) -> None:
    done = answerback("call", "tools.py", "steps")

    assert "info: a note\n" in done.stderr
    assert 'warning: {"n":1}\n' in done.stderr
    assert "half way" not in done.stderr


def test_an_interrupt_ends_it_without_a_traceback(answerback: Run) -> None:
    done = answerback("call", "tools.py", "interrupted")

    assert done.exit == 130
    assert "Traceback" not in done.stderr


def test_a_reader_that_went_away_is_no_trouble(tools: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "answerback", "call", str(tools), "add", "x=1"]

    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert b"Traceback" not in result.stderr
    assert b"BrokenPipe" not in result.stderr
    assert result.returncode == 141


def test_closed_streams_are_no_trouble(tools: Path) -> None:
    for closing in ("2>&-", ">&-", "<&- >&- 2>&-"):
        shell = f'exec "$0" -m answerback call "$1" noisy {closing}'
        result = subprocess.run(["sh", "-c", shell, sys.executable, str(tools)], check=False)

        assert result.returncode == 0


def test_a_person_reads_words(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "tools.py", "city")

    assert "Name: Oslo\n" in seen.stdout
    assert "{" not in seen.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("add", "x=7", "y=3"), "\n10\n"),
        (("echo", "text=hello"), "\nhello\n"),
        (("nothing",), "\nDone\n"),
        (("both",), "\nIt is seven.\n\n7\n"),
        (("picture",), "\nimage/png, 256 bytes; pipe it to a file\n"),
        (("picture", "--dialect", "rest"), "\nimage/png, 256 bytes; pipe it to a file\n"),
        (("album",), "\nimage/png, 5 bytes\n\nmore: https://example.com\n"),
        (("add", "x=7", "--dialect", "rest"), '\n{"result":8}\n'),
        (("missing",), "\nerror: no such city (NOT_FOUND)\nhint: try Oslo\n"),
        (
            ("add", "x=a", "z=1"),
            "\nerror: Invalid arguments (INVALID_ARGUMENTS)\n"
            "  x: expected int, got str 'a'\n  z: unknown argument\n",
        ),
        (
            ("add", "x=a"),
            "\nerror: Invalid arguments: x: expected int, got str 'a' (INVALID_ARGUMENTS)\n",
        ),
        (
            ("zzzzz",),
            "\nerror: Function not found: zzzzz (TOOL_NOT_FOUND)\n"
            "hint: `answerback list tools.py` shows the tools\n",
        ),
        (("echo", "text=\x1b[31mred"), "\n\\x1b[31mred\n"),
    ],
)
def test_each_reply_has_its_words(
    on_a_terminal: Run, arguments: tuple[str, ...], words: str
) -> None:
    seen = on_a_terminal("call", "tools.py", *arguments)

    assert seen.stdout.endswith(words)


def test_a_person_sees_progress_in_one_line_that_goes_away(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "tools.py", "steps")

    assert "\r\x1b[K50% half way\r\x1b[Kinfo: a note\n" in seen.stdout
    assert seen.stdout.endswith("done\n")
