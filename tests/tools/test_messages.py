"""What an author reads after a mistake, or after a habit from another framework."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from answerback import App, Audio, Context, Image, NotFound, Text, ToolError, failure, success
from answerback.registry.declarations import registry_of
from answerback.testing import TestContext

# mypy is right about these functions and calls.
# mypy: disable-error-code="no-untyped-def, arg-type, attr-defined, call-overload, return-value"
# mypy: disable-error-code="truthy-bool, comparison-overlap, no-any-return"


def _refusal(register: Callable[[App], Any]) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        register(App("mistakes"))
    return str(caught.value)


def _error(fn: Callable[..., Any], **arguments: Any) -> str:
    app = App("mistakes")
    app.add_tool(fn)
    reply = asyncio.run(app.call(fn.__name__, **arguments))
    assert reply.error is not None
    return reply.error.message


def test_a_resource_and_a_prompt_may_have_any_name() -> None:
    app = App("names")

    @app.resource("memo://insights", name="Business Insights Memo")
    def memo() -> str:
        return ""

    @app.prompt(name="Analyse: données (v2)")
    def analyse() -> str:
        return ""

    assert app.resources["memo://insights"].name == "Business Insights Memo"
    assert list(registry_of(app).prompts) == ["Analyse: données (v2)"]


@pytest.mark.parametrize("name", [" ", "a\nb", 7])
def test_a_name_of_a_resource_that_cannot_be_shown_is_refused(name: Any) -> None:
    message = _refusal(lambda app: app.resource("a://b", name=name)(lambda: ""))

    assert message == f"{name!r} cannot be a name; write text without control characters"


def untyped_value(value): ...
def untyped_ctx(ctx): ...
def untyped_params(params): ...
def untyped_logger(x: int, logger): ...


def test_a_message_about_a_resource_or_a_prompt_does_not_call_it_a_tool() -> None:
    resource = _refusal(lambda app: app.resource("a://{value}")(untyped_value))
    prompt = _refusal(lambda app: app.prompt(untyped_value))

    assert resource == (
        "parameter 'value' of resource 'untyped_value' has no type; write value: str"
    )
    assert prompt == "parameter 'value' of prompt 'untyped_value' has no type; write value: str"


@pytest.mark.parametrize(
    ("fn", "advice"),
    [
        (untyped_ctx, "write ctx: Context with Context from answerback"),
        (
            untyped_params,
            "write one parameter for each argument, as in def untyped_params(x: int, y: str), "
            "or params: Annotated[dict, AllArguments] for all arguments as one object",
        ),
        (
            untyped_logger,
            "write logger: str for an argument, "
            "or logger: Annotated[T, Depends(fn)] for a value from the server",
        ),
    ],
)
def test_a_parameter_without_a_type_is_refused_with_what_its_name_suggests(
    fn: Callable[..., Any], advice: str
) -> None:
    message = _refusal(lambda app: app.add_tool(fn))

    assert message.endswith(f"has no type; {advice}")


def test_a_lambda_without_a_name_is_refused_as_a_lambda() -> None:
    message = _refusal(lambda app: app.add_tool(lambda: 1))

    assert message == "a lambda has no name and no types; write a def, or give a name="


def test_a_lambda_with_a_parameter_is_refused_although_it_has_a_name() -> None:
    message = _refusal(lambda app: app.add_tool(lambda x: x, name="same"))

    assert message == (
        "parameter 'x' of tool 'same' has no type; a lambda cannot have types, so write a def"
    )


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"instructions": "Be brief."}, "write description="),
        ({"host": "0.0.0.0"}, "write app.run(['serve', '--host', '127.0.0.1'])"),
    ],
)
def test_an_option_of_another_framework_s_server_names_the_new_way(
    options: dict[str, Any], advice: str
) -> None:
    with pytest.raises(TypeError) as caught:
        App("mistakes", **options)

    assert f"no option is named {min(options)!r}; " in str(caught.value)
    assert advice in str(caught.value)


def test_the_annotations_of_a_tool_are_named_by_the_hints() -> None:
    message = _refusal(lambda app: app.tool(annotations={"readOnlyHint": True})(untyped_value))

    assert message == (
        "no option is named 'annotations'; "
        "write read_only=, destructive=, idempotent= or open_world="
    )


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            lambda app: app.run(transport="stdio"),
            "app.run takes no transport=; the command decides: "
            "app.run(['mcp']) for stdio, app.run(['serve']) for HTTP",
        ),
        (
            lambda app: app.run(port=80),
            "app.run takes no port=; write app.run(['serve', '--port', '8000'])",
        ),
        (
            lambda app: app.run("mcp"),
            "app.run takes a list, not 'mcp'; write app.run(['mcp'])",
        ),
        (
            lambda app: app.run("stdio"),
            "app.run takes a list, not 'stdio'; write app.run(['mcp'])",
        ),
    ],
)
def test_run_with_the_arguments_of_another_framework_names_the_new_way(
    run: Callable[[App], Any], message: str
) -> None:
    assert _refusal(run) == message


@pytest.mark.parametrize(
    ("member", "advice"),
    [
        ("info", "write ctx.log(message, 'info')"),
        ("warning", "write ctx.log(message, 'warning')"),
        ("report_progress", "did you mean 'progress'?"),
        ("request_context", "write ctx.request for the request"),
    ],
)
def test_a_member_of_another_framework_s_context_names_the_new_way_in_the_log(
    member: str, advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(ctx: Context) -> None:
        await getattr(ctx, member)("hello")

    with caplog.at_level(logging.ERROR, "answerback"):
        message = _error(talk)

    assert message.startswith("The tool failed unexpectedly")
    assert f"'Context' object has no attribute {member!r}; {advice}" in caplog.text


@pytest.mark.parametrize("member", ["data", "error", "ok"])
def test_a_reply_that_is_not_awaited_says_so(member: str) -> None:
    app = App("mistakes")
    app.add_tool(nothing)
    reply = app.call("nothing")

    with pytest.raises(AttributeError) as caught:
        getattr(reply, member)

    assert str(caught.value).endswith(f"{member!r}; write await app.call(...)")
    assert asyncio.run(reply).ok


async def _call_in_each_way(app: App) -> list[bool]:
    task = asyncio.create_task(app.call("nothing"))
    waited = await asyncio.wait_for(app.call("nothing"), 60)
    first, second = await asyncio.gather(app.call("nothing"), app.call("nothing"))
    return [(await task).ok, waited.ok, first.ok, second.ok, (await app.call("nothing")).ok]


def test_a_call_is_awaited_in_every_way_of_asyncio() -> None:
    app = App("mistakes")
    app.add_tool(nothing)

    assert asyncio.run(_call_in_each_way(app)) == [True] * 5


def test_the_task_of_a_call_can_be_shown_before_it_runs() -> None:
    """From Python 3.12 on, asyncio tests the coroutine of a task that it shows."""
    app = App("mistakes")
    app.add_tool(nothing)

    async def show_and_wait() -> tuple[str, bool]:
        task = asyncio.create_task(app.call("nothing"))
        return repr(task), (await task).ok

    shown, ok = asyncio.run(show_and_wait())

    assert shown.startswith("<Task pending")
    assert ok


def _asked(ctx: Context) -> str:
    return f"{ctx.elicit('Sure?', bool)}"


def _tested(ctx: Context) -> str:
    return "deleted" if ctx.elicit("Sure?", bool) else "kept"


async def _compared(ctx: Context) -> bool:
    return ctx.elicit("Name?", str) == "ada"


async def _read(ctx: Context) -> str:
    return str(ctx.roots())


@pytest.mark.parametrize(
    ("fn", "member"),
    [(_asked, "elicit"), (_tested, "elicit"), (_compared, "elicit"), (_read, "roots")],
)
def test_a_question_that_is_not_awaited_is_refused_with_what_to_write(
    fn: Callable[..., Any], member: str, caplog: pytest.LogCaptureFixture
) -> None:
    message = _error(fn, ctx=TestContext(answers=[True]))

    assert message.startswith("The tool failed unexpectedly")
    assert (
        f"ctx.{member}(…) is not awaited; write await ctx.{member}(…), which needs" in caplog.text
    )


def test_a_plain_function_may_return_a_question_or_run_it() -> None:
    app = App("asking")

    @app.tool
    def returned(ctx: Context) -> bool:
        return ctx.elicit("Sure?", bool)

    @app.tool
    def run(ctx: Context) -> bool:
        return asyncio.run(ctx.elicit("Sure?", bool))

    for name in ("returned", "run"):
        assert asyncio.run(app.call(name, ctx=TestContext(answers=[True]))).data is True


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        (lambda ctx: ctx.elicit("Name?", response_type=str), "has no option 'response_type'"),
        (lambda ctx: ctx.elicit(message="Name?", schema=Card), "has no option 'schema'"),
        (lambda ctx: ctx.elicit("Name?"), "needs the answer's type"),
    ],
)
def test_a_question_in_the_form_of_another_framework_names_the_new_form(
    ask: Callable[[Context], Any], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def talk(ctx: Context) -> str:
        return await ask(ctx)

    _error(talk, ctx=TestContext())

    assert f"ctx.elicit {problem}; write ctx.elicit('Sure?', bool), which returns" in caplog.text


def test_a_lifespan_cannot_be_set_later() -> None:
    with pytest.raises(AttributeError, match="the lifespan is set when the app is made: App"):
        App("late").lifespan = lambda: None


def test_a_text_that_was_returned_instead_of_data_is_in_the_log_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fetch() -> dict[str, int]:
        return "Error: refused, api_key=sk-abcdefghijklmnopqrstuvwxyz " + "x" * 1000

    def count() -> int:
        return "Error: no such table"

    for fn in (fetch, count):
        assert "Error" not in _error(fn)

    fetched, counted = (record.getMessage() for record in caplog.records)
    assert "it returned the text 'Error: refused, api_key=*** xx" in fetched
    assert "…'; raise ToolError(...) instead" in fetched
    assert len(fetched) < 500
    assert counted.endswith("the text 'Error: no such table'; raise ToolError(...) instead")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("retry", "retry=3 should be a Retry from answerback.resilience, such as Retry(3)"),
        (
            "limit",
            "limit=3 should be a Limit from answerback.resilience, such as Limit('10/s'), or",
        ),
        ("breaker", "breaker=3 should be a Breaker from answerback.resilience, such as Breaker("),
    ],
)
def test_a_number_for_a_policy_shows_what_to_write(option: str, message: str) -> None:
    options: dict[str, Any] = {option: 3}

    assert message in _refusal(lambda app: app.tool(**options)(nothing))


def test_the_log_of_a_masked_exception_says_how_to_show_a_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def divide() -> None:
        raise ValueError("y must not be 0")

    with caplog.at_level(logging.ERROR, "answerback"):
        message = _error(divide)

    assert "y must not be 0" not in message
    assert "raise ToolError(...) to show a message" in caplog.text


def short(
    text: Annotated[str, pydantic.Field(max_length=5)],
    more: Annotated[str | None, pydantic.Field(min_length=3)] = None,
) -> None: ...


class Card(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=5)


def print_card(card: Card) -> None: ...
def add_files(files: Annotated[list[str], pydantic.Field(min_length=1)]) -> None: ...
def visit(url: Annotated[pydantic.AnyUrl, pydantic.Field(description="d")]) -> None: ...
def zip_code(code: Annotated[str, pydantic.Field(pattern=r"^\d+$")]) -> None: ...
def pair(both: tuple[int, int]) -> None: ...
def query(query: str, limit: int = 1) -> None: ...
def nothing() -> None: ...


@pytest.mark.parametrize(
    ("fn", "arguments", "problem"),
    [
        (add_files, {"files": []}, "files: expected array of length >= 1, got array of length 0"),
        (pair, {"both": [1]}, "both: expected array of length 2, got array of length 1"),
        (
            short,
            {"text": "abcdef"},
            "text: expected str of length <= 5, got str 'abcdef' of length 6",
        ),
        (
            short,
            {"text": "a", "more": "b"},
            "more: expected str of length >= 3 | null, got str 'b' of length 1",
        ),
        (
            print_card,
            {"card": {"name": "abcdef"}},
            "card.name: string should have at most 5 characters, got str of length 6",
        ),
        (visit, {}, "url: missing, expected AnyUrl"),
        (zip_code, {"code": "a"}, r"code: expected str matching '^\d+$', got str 'a'"),
        (
            query,
            {"query": "x", "sql": "y"},
            "sql: unknown argument; the arguments are query, limit",
        ),
        (
            zip_code,
            {"code": "1", "sql": "y"},
            "sql: unknown argument; the only argument is code",
        ),
        (nothing, {"sql": "y"}, "sql: unknown argument; it takes no arguments"),
    ],
)
def test_a_message_about_an_argument_says_what_is_wrong_with_it(
    fn: Callable[..., Any], arguments: dict[str, Any], problem: str
) -> None:
    assert _error(fn, **arguments) == f"Invalid arguments: {problem}"


def _run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    target = tmp_path / "mistakes.py"
    target.write_text(
        "from answerback import App\n"
        "app = App('mistakes')\n"
        "@app.tool\n"
        "def f(x: int, y: int = 0): return x\n"
        "if __name__ == '__main__': app.run()\n"
    )
    command = [sys.executable, str(target), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["x", "1"], "'x' is not name=value; write x=1"),
        (["y"], "'y' is not name=value; write y=VALUE"),
        (["7"], "'7' is not name=value; write x=7"),
        (["seven or eight"], "'seven or eight' is not name=value; write x='seven or eight'"),
        (["x=7", "8"], "'8' is not name=value; write x='7 8' if it belongs to x, or y=8"),
        (["y=0", "x=7", "or", "8"], "'or' is not name=value; write x='7 or 8' if it belongs to x"),
    ],
)
def test_a_word_without_an_equals_sign_is_refused_with_the_pair_that_was_meant(
    tmp_path: Path, words: list[str], advice: str
) -> None:
    done = _run(tmp_path, "call", "f", *words)

    assert done.returncode == 2
    assert advice in done.stderr


def test_a_broken_object_on_the_command_line_is_said_to_be_no_json(tmp_path: Path) -> None:
    target = tmp_path / "objects.py"
    target.write_text(
        "from answerback import App\n"
        "app = App('objects')\n"
        "@app.tool\n"
        "def f(note: dict[str, str]) -> int: return len(note)\n"
        "app.run()\n"
    )
    command = [sys.executable, str(target), "call", "f", "note={title: Milk}"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert "note: not JSON: " in done.stderr
    assert "write it in single quotes" in done.stderr


def test_json_without_an_object_says_how_to_get_a_reply_as_json(tmp_path: Path) -> None:
    done = _run(tmp_path, "call", "f", "x=7", "--json")

    assert done.returncode == 2
    assert "--json needs the arguments as a JSON object" in done.stderr
    assert "| cat" in done.stderr


def test_list_says_which_tools_have_no_return_type(tmp_path: Path) -> None:
    done = _run(tmp_path, "list")

    assert done.stdout.startswith("f x=")
    assert done.stderr == (
        "note: f has no return type, so callers get no output schema; write -> and the type\n"
    )


def test_success_takes_text_data_and_meta_by_position() -> None:
    reply = success("Done", {"a": 1}, {"trace": "x"})

    assert reply.content == (Text("Done"),)
    assert (reply.data, reply.meta) == ({"a": 1}, {"trace": "x"})


def test_failure_takes_message_code_and_details_by_position() -> None:
    error = failure("no such city", "CITY_UNKNOWN", {"city": "Atlantis"}).error

    assert error is not None
    assert (error.message, error.code) == ("no such city", "CITY_UNKNOWN")
    assert error.details == {"city": "Atlantis"}


@pytest.mark.parametrize("cls", [ToolError, NotFound])
def test_a_tool_error_takes_message_code_and_details_by_position(cls: type[ToolError]) -> None:
    def find() -> None:
        raise cls("no such city", "CITY_UNKNOWN", {"city": "Atlantis"})

    app = App("positions")
    app.add_tool(find)
    error = asyncio.run(app.call("find")).error

    assert error is not None
    assert (error.message, error.code) == ("no such city", "CITY_UNKNOWN")
    assert error.details == {"city": "Atlantis"}


@pytest.mark.parametrize("cls", [Image, Audio])
def test_base64_text_is_taken_as_the_data_of_an_image_or_audio(cls: Any) -> None:
    assert cls("aGVsbG8=", "image/png") == cls(b"hello", "image/png")


@pytest.mark.parametrize("data", ["not base64!", "aGVsbG8", "/tmp/a.png"])
def test_text_that_is_not_base64_is_refused_as_an_image(data: str) -> None:
    with pytest.raises(ValueError, match=r"not base64; pass bytes, Image\.open\(path\) or url="):
        Image(data, "image/png")
