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


def test_an_argument_with_a_default_is_optional(answerback: Run) -> None:
    assert answerback("call", "tools.py", "add", "x=7").stdout == '{"result":8}\n'


def test_a_file_that_runs_its_own_app_takes_the_same_arguments(tools: Path) -> None:
    command = [sys.executable, str(tools), "call", "add", "x=7", "y=3"]

    result = subprocess.run(command, capture_output=True, check=True)

    assert result.stdout.endswith(b'{"result":10}\n')


def test_options_are_allowed_between_the_arguments(answerback: Run) -> None:
    done = answerback("call", "--dialect", "mcp", "tools.py", "add", "x=7", "--json", "{}", "y=3")

    assert json.loads(done.stdout)["structuredContent"] == {"result": 10}


def test_an_argument_can_be_read_from_a_file(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))

    done = answerback("call", "tools.py", "size_of", "content=@data.bin")

    assert done.stdout == '{"result":256}\n'


def test_an_argument_can_be_read_from_stdin(answerback: Run) -> None:
    done = answerback("call", "tools.py", "echo", "text=-", stdin="Tromsø".encode())

    assert json.loads(done.stdout) == {"result": "Tromsø"}


def test_a_tool_that_reads_stdin_reads_nothing(answerback: Run) -> None:
    done = answerback("call", "tools.py", "read_stdin", stdin=b"not for the tool")

    assert done.stdout == '{"result":""}\n'


@pytest.mark.parametrize(
    ("word", "text"),
    [("text=@@file", "@file"), ("text=a=b", "a=b"), ("text=", ""), ("text=-1", "-1")],
)
def test_text_with_special_characters_is_passed_unchanged(
    answerback: Run, word: str, text: str
) -> None:
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
def test_an_argument_that_cannot_be_read_is_an_error_in_one_line(
    answerback: Run, arguments: list[str]
) -> None:
    done = answerback("call", "tools.py", *arguments)

    assert done.exit == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr


def test_a_value_without_a_name_gets_advice(answerback: Run) -> None:
    assert "write x=7" in answerback("call", "tools.py", "add", "7").stderr
    assert "write x=7" in answerback("call", "tools.py", "add", "=7").stderr


@pytest.mark.parametrize("words", [("--x=7",), ("-x=7",), ("--x", "7")])
def test_an_argument_written_as_an_option_gets_advice(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", "tools.py", "add", *words)

    assert done.exit == 2
    flag = words[0].partition("=")[0]
    assert f"{flag} is not an option; write an argument as x=value\n" in done.stderr
    assert "7" not in done.stderr


def test_json_is_the_whole_argument_object(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "given.json").write_text('{"x": 7, "y": 3}')

    given = answerback("call", "tools.py", "add", "--json", '{"x": 7, "y": 3}')
    from_file = answerback("call", "tools.py", "add", "--json", "@given.json")
    from_stdin = answerback("call", "tools.py", "add", "--json", "-", stdin=b'{"x": 7, "y": 3}')

    assert given.stdout == from_file.stdout == from_stdin.stdout == '{"result":10}\n'


def test_a_json_file_may_have_a_byte_order_mark_and_crlf(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "given.json").write_bytes(b'\xef\xbb\xbf{"x": 7,\r\n"y": 3}\r\n')

    done = answerback("call", "tools.py", "add", "--json", "@given.json")

    assert done.stdout == '{"result":10}\n'


def test_a_name_value_pair_replaces_one_argument_of_the_json(answerback: Run) -> None:
    done = answerback("call", "tools.py", "add", "--json", '{"x": 7, "y": 3}', "y=4")

    assert done.stdout == '{"result":11}\n'


@pytest.mark.parametrize(
    ("json_option", "message"),
    [
        ("{not json", "--json is not JSON: expecting property name … at line 1, column 2"),
        ('{"x": 7', "--json is not JSON: expecting ',' delimiter at line 1, column 8"),
        ("@broken.json", "--json @broken.json is not JSON: expecting value at line 2, column 8"),
        ("-", "--json - is not JSON: expecting value at line 1, column 1"),
        ("{" * 300, "--json is not JSON: "),
    ],
)
@pytest.mark.parametrize("word", [(), ("x=1",)])
def test_malformed_json_is_refused_with_its_source_and_position(
    answerback: Run, tmp_path: Path, json_option: str, message: str, word: tuple[str, ...]
) -> None:
    (tmp_path / "broken.json").write_text('{\n  "x": seven}\n')

    done = answerback(
        "call", "tools.py", "add", "--json", json_option, *word, "--dialect", "envelope"
    )

    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert (done.exit, error["code"]) == (2, "INVALID_JSON")
    for part in message.split("…"):
        assert part in error["message"]


def test_a_terminal_shows_a_caret_below_malformed_json(on_a_terminal: Run) -> None:
    broken = '{"a": "' + "b" * 80 + '", c: "' + "d" * 80 + '"}'

    seen = on_a_terminal("call", "tools.py", "add", "--json", broken)

    error, shown, caret = seen.stdout.splitlines()[-3:]
    assert error.endswith("(INVALID_JSON)")
    assert shown[caret.index("^")] == "c"
    assert len(shown) < 80


@pytest.mark.parametrize("json_option", ["[1]", "7", '{"y": 1e999}'])
@pytest.mark.parametrize("word", [(), ("x=1",)])
def test_json_that_is_not_an_object_or_has_a_huge_number_is_refused(
    answerback: Run, json_option: str, word: tuple[str, ...]
) -> None:
    done = answerback("call", "tools.py", "add", "--json", json_option, *word)

    assert done.exit == 2
    assert "error" in json.loads(done.stderr.splitlines()[-1])


def test_a_list_can_be_read_from_the_lines_of_a_file(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "tags.txt").write_text("a\nb, c\n")

    done = answerback("call", "tools.py", "describe", "tags=@tags.txt", "when=2026-01-01")

    assert json.loads(done.stdout) == {"result": "['a', 'b, c'] 2026-01-01 False big"}


def test_printed_text_goes_to_stderr_and_not_to_stdout(answerback: Run) -> None:
    done = answerback("call", "tools.py", "noisy")

    assert done.stdout == '{"result":"quiet"}\n'
    for words in ("as the module is loaded", "printed\n", "to fd 1", "by a subprocess"):
        assert words in done.stderr


def test_a_single_image_is_piped_as_its_bytes(tools: Path) -> None:
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
def test_the_dialect_option_chooses_the_form_of_the_json(answerback: Run, dialect: str) -> None:
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


def test_a_similar_tool_or_argument_name_is_suggested(answerback: Run) -> None:
    tool = answerback("call", "tools.py", "ad", "x=1")
    argument = answerback("call", "tools.py", "describe", "tag=a", "when=2026-01-01")
    loud = answerback("call", "tools.py", "ADD", "x=1")

    assert "'add'" in tool.stderr
    assert "'add'" in loud.stderr
    assert "tags" in argument.stderr
    assert (tool.exit, argument.exit) == (2, 2)


def test_all_invalid_arguments_are_named(answerback: Run) -> None:
    done = answerback("call", "tools.py", "describe", "when=soon", "size=huge", "wrong=1")

    message = json.loads(done.stderr.splitlines()[-1])["error"]
    for name in ("when", "size", "wrong", "tags"):
        assert name in message


def test_a_call_without_a_tool_name_lists_the_tools(answerback: Run) -> None:
    done = answerback("call", "tools.py")

    assert done.exit == 2
    assert "add x=INTEGER [y=INTEGER]" in done.stderr


def test_a_call_without_a_target_is_a_usage_error(answerback: Run) -> None:
    done = answerback("call")

    assert done.exit == 2
    assert "calculator.py" in done.stderr


@pytest.mark.parametrize("words", [("add",), ("add", "x=1", "y=2 3")])
def test_a_tool_name_in_place_of_the_target_gets_the_correct_command_line(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", *words)

    assert done.exit == 2
    assert done.stderr.startswith("error: there is no file, module or command 'add'; ")
    assert done.stderr.endswith(f": answerback call calculator.py {shlex.join(words)}\n")


@pytest.mark.parametrize("words", [("nope.py", "x=1"), ("nope", "add", "x=1")])
def test_a_missing_target_with_a_tool_name_gets_no_such_advice(
    answerback: Run, words: tuple[str, ...]
) -> None:
    done = answerback("call", *words)

    assert done.exit == 2
    assert "call calculator.py" not in done.stderr


def test_an_argument_in_place_of_the_tool_name_lists_the_tools(answerback: Run) -> None:
    done = answerback("call", "tools.py", "x=1")

    assert done.exit == 2
    assert "error: name the tool to call\n\nadd x=INTEGER" in done.stderr


def test_a_call_of_a_sync_tool_imports_no_heavy_module(answerback: Run) -> None:
    """Contract: a call from a shell starts fast."""
    done = answerback("call", "tools.py", "modules")

    assert json.loads(done.stdout) == {"result": []}


def test_an_async_tool_is_awaited(answerback: Run) -> None:
    assert answerback("call", "tools.py", "later", "x=1").stdout == '{"result":2}\n'


def test_log_messages_go_to_stderr_and_progress_to_terminals_only(answerback: Run) -> None:
    done = answerback("call", "tools.py", "steps")

    assert "info: a note\n" in done.stderr
    assert 'warning: {"n":1}\n' in done.stderr
    assert "half way" not in done.stderr


def test_an_interrupt_exits_with_130_and_no_traceback(answerback: Run) -> None:
    done = answerback("call", "tools.py", "interrupted")

    assert done.exit == 130
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_exits_with_141_and_no_traceback(tools: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "answerback", "call", str(tools), "add", "x=1"]

    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)

    assert b"Traceback" not in result.stderr
    assert b"BrokenPipe" not in result.stderr
    assert result.returncode == 141


def test_a_call_works_with_closed_stdin_and_stderr(tools: Path) -> None:
    for closing in ("2>&-", "<&-", "<&- 2>&-"):
        shell = f'exec "$0" -m answerback call "$1" noisy {closing}'
        result = subprocess.run(["sh", "-c", shell, sys.executable, str(tools)], check=False)

        assert result.returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        "call tools.py add x=1",
        "call tools.py add --help",
        "list tools.py",
        "openapi tools.py",
        "schema mcp",
        "rule AB101",
        "call --help",
        "--help",
        "--version",
    ],
)
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written_is_an_error_in_one_line(
    command: str, redirection: str, tools: Path
) -> None:
    shell = f'exec "$0" -m answerback {command} {redirection}'

    result = subprocess.run(
        ["sh", "-c", shell, sys.executable],
        cwd=tools.parent,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )

    assert result.returncode == 74
    lines = result.stderr.decode().splitlines()
    assert [line for line in lines if "printed as" not in line] == [
        "error: cannot write to stdout: "
        + ("No space left on device" if redirection == ">/dev/full" else "it is closed")
    ]


def test_an_error_in_a_pipe_is_one_line_of_json_with_the_code_and_the_hint(answerback: Run) -> None:
    done = answerback("call", "tools.py", "missing")

    printed, line = done.stderr.splitlines()
    assert printed == "printed as the module is loaded"
    assert json.loads(line) == {"error": "no such city", "code": "NOT_FOUND", "hint": "try Oslo"}


def test_a_terminal_gets_text_and_not_json(on_a_terminal: Run) -> None:
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
        (("picture",), "\nimage/png, 256 bytes; save it with --output FILE\n"),
        (("picture", "--dialect", "rest"), "\nimage/png, 256 bytes; save it with --output FILE\n"),
        (
            ("album",),
            "\nimage/png, 5 bytes; save it with --output FILE\n\nmore: https://example.com\n",
        ),
        (("add", "x=7", "--dialect", "rest"), '\n{"result":8}\n'),
        (("missing",), "\nerror: no such city (NOT_FOUND)\nhint: try Oslo\n"),
        (
            ("add", "x=a", "z=1"),
            "\nerror: Invalid arguments (INVALID_ARGUMENTS)\n"
            "  x: expected int, got str 'a'\n  z: unknown argument; the arguments are x, y\n",
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
def test_each_kind_of_reply_is_rendered_on_a_terminal(
    on_a_terminal: Run, arguments: tuple[str, ...], words: str
) -> None:
    seen = on_a_terminal("call", "tools.py", *arguments)

    assert seen.stdout.endswith(words)


def test_a_terminal_shows_progress_in_one_line_that_is_erased(on_a_terminal: Run) -> None:
    seen = on_a_terminal("call", "tools.py", "steps")

    assert "\r\x1b[K50% half way\r\x1b[Kinfo: a note\n" in seen.stdout
    assert seen.stdout.endswith("done\n")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("review", "'review' is a prompt, not a tool; write: answerback prompt more.py review"),
        (
            "config://app",
            "'config://app' is a resource, not a tool; write: answerback read more.py",
        ),
    ],
)
def test_the_name_of_a_prompt_or_resource_is_answered_with_its_command(
    answerback: Run, tmp_path: Path, name: str, advice: str
) -> None:
    (tmp_path / "more.py").write_text(
        "from answerback import App\napp = App('more')\n"
        "@app.prompt\ndef review(text: str) -> str:\n    return text\n"
        "@app.resource('config://app')\ndef config() -> str:\n    return ''\n"
    )

    done = answerback("call", "more.py", name, "text=x")

    assert done.exit == 2
    assert done.stderr.startswith(f"error: {advice}")
