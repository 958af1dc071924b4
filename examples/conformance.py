"""The tools, resources and prompts that the official conformance suite calls.

It also shows every MCP feature of Answerback once.
"""

import asyncio
import base64
import time
from typing import Annotated, Any, Literal, TypedDict

from answerback import (
    App,
    Ask,
    Audio,
    Context,
    Embedded,
    Header,
    Image,
    Message,
    Text,
    ToolError,
)
from answerback.errors import Code, add_codes

app = App("conformance", version="1.0.0", description="Fixtures for the conformance suite.")

# MCP sends this error as a JSON-RPC error, so that a task with it is "failed".
add_codes({"JOB_BROKE": Code(500, rpc=-32603)})

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")
PAUSE = 0.05


@app.tool(read_only=True)
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool(read_only=True)
def test_image_content() -> Image:
    """Return an image."""
    return Image(PNG, "image/png")


@app.tool(read_only=True)
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(WAV, "audio/wav")


@app.tool(read_only=True)
def test_embedded_resource() -> Embedded:
    """Return an embedded resource."""
    return Embedded(
        "test://embedded-resource", text="This is an embedded resource content.", mime="text/plain"
    )


@app.tool(read_only=True)
def test_multiple_content_types() -> list[Text | Image | Embedded]:
    """Return a text, an image and an embedded resource."""
    return [
        Text("Multiple content types test:"),
        Image(PNG, "image/png"),
        Embedded(
            "test://mixed-content-resource",
            text='{"test":"data","value":123}',
            mime="application/json",
        ),
    ]


@app.tool
def test_error_handling() -> str:
    """Fail with a message."""
    raise ToolError("This tool intentionally returns an error for testing")


@app.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        ctx.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE)
    return "Tool with progress executed successfully"


@app.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Send log messages."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        ctx.log(message)
        await asyncio.sleep(PAUSE)
    return "Tool with logging executed successfully"


@app.tool
def test_logging_tool(ctx: Context) -> str:
    """Send a log message that no client asked for."""
    ctx.log("No client receives this")
    return "Logged"


@app.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model.

    Args:
        prompt: The prompt for the model.
    """
    sample = await ctx.sample(prompt, max_tokens=100)
    return f"LLM response: {sample.text}"


@app.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user.

    Args:
        message: The question.
    """
    form = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    answer = await ctx.elicit(message, form)
    return f"User response: action=accept, content={answer}"


@app.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask the user with a form that has a default for each kind of field."""
    form = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": True},
        },
        "required": [],
    }
    answer = await ctx.elicit("Please review and update the form fields with defaults", form)
    return f"Elicitation completed: action=accept, content={answer}"


def _titled(*titles: str) -> list[dict[str, str]]:
    return [{"const": f"value{n}", "title": title} for n, title in enumerate(titles, 1)]


@app.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask the user with a form that has each kind of choice."""
    options = ["option1", "option2", "option3"]
    form = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {
                "type": "string",
                "oneOf": _titled("First Option", "Second Option", "Third Option"),
            },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {
                "type": "array",
                "items": {"anyOf": _titled("First Choice", "Second Choice", "Third Choice")},
            },
        },
        "required": [],
    }
    answer = await ctx.elicit("Please choose", form)
    return f"Elicitation completed: action=accept, content={answer}"


@app.tool
async def test_reconnection(ctx: Context) -> str:
    """Close the connection; the client reconnects for the result."""
    ctx.log("Closing the connection")
    ctx.close_stream()
    await asyncio.sleep(4 * PAUSE)
    return "Reconnection test completed successfully"


class Address(TypedDict):
    street: str
    city: str


@app.tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {
            "properties": {"contactMethod": {"const": "phone"}},
            "required": ["contactMethod"],
        },
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
def json_schema_2020_12_tool(
    name: str = "",
    address: Address | None = None,
    contactMethod: Literal["phone", "email"] = "email",  # noqa: N803 -- the suite's name
    phone: str = "",
    email: str = "",
) -> str:
    """Have an input schema that no Python type can express."""
    return f"{name}: {phone or email} by {contactMethod} {address or ''}"


@app.tool
def test_x_mcp_header(region: Annotated[str, Header("Region")] = "") -> str:
    """Take an argument that the client also sends in a header.

    Args:
        region: The region.
    """
    return f"region={region}"


@app.tool
async def test_missing_capability(ctx: Context) -> str:
    """Need a client with a model."""
    return (await ctx.sample("Hello", max_tokens=100)).text


@app.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user, on any wire."""
    return str(await ctx.elicit("Go on?", bool))


@app.tool
def test_trigger_tool_change() -> str:
    """Add a tool and remove it, so that clients are notified."""

    def test_temporary_tool() -> str:
        """Exist for a moment."""
        return "here"

    app.add_tool(test_temporary_tool)
    app.remove_tool("test_temporary_tool")
    return "The list of tools has changed"


@app.tool
def test_trigger_prompt_change() -> str:
    """Add a prompt and remove it, so that clients are notified."""

    def test_temporary_prompt() -> str:
        """Exist for a moment."""
        return "here"

    app.prompt(test_temporary_prompt)
    app.remove_prompt("test_temporary_prompt")
    return "The list of prompts has changed"


class Named(TypedDict):
    name: str


class Confirmed(TypedDict):
    ok: bool


class Coloured(TypedDict):
    color: str


class Contextual(TypedDict):
    context: str


@app.tool
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("What is your name?", Named, key="user_name")
    return f"Hello, {answer['name']}!"


@app.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model a question."""
    sample = await ctx.sample(
        "What is the capital of France?", max_tokens=100, key="capital_question"
    )
    return sample.text


@app.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask the client for its roots."""
    return ", ".join(root.uri for root in await ctx.roots(key="client_roots"))


@app.tool
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask; the server stores nothing until the answer arrives."""
    answer = await ctx.elicit("Please confirm", Confirmed, key="confirm")
    return f"state-ok: {answer['ok']}"


@app.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask; a changed request state is refused."""
    answer = await ctx.elicit("Please confirm", Confirmed, key="confirm")
    return f"confirmed: {answer['ok']}"


@app.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask the user, the model and the client at once."""
    named, greeting, roots = await ctx.together(
        ctx.elicit("What is your name?", Named, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{greeting.text} {named['name']}, of {len(roots)} roots"


@app.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask one question after the other."""
    first = await ctx.elicit("Step 1: What is your name?", Named, key="step1")
    second = await ctx.elicit("Step 2: What is your favorite color?", Coloured, key="step2")
    return f"{first['name']} likes {second['color']}"


@app.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask the user if the client supports it, else the client's model."""
    if ctx.can.elicit:
        return str(await ctx.elicit("Go on?", bool, key="go_on"))
    return (await ctx.sample("Go on?", max_tokens=10, key="go_on")).text


@app.resource("test://static-text", mime="text/plain")
def static_text() -> str:
    """A text resource."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime="image/png")
def static_binary() -> bytes:
    """A binary resource."""
    return PNG


@app.resource("test://watched-resource", mime="text/plain")
def watched_resource() -> str:
    """A text resource that clients can subscribe to."""
    return "Watched resource content"


@app.resource("test://template/{id}/data", mime="application/json")
def template_data(id: str) -> dict[str, Any]:
    """Data by its id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@app.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.completion("test_prompt_with_arguments", "arg1")
def complete_arg1(value: str) -> list[str]:
    """Suggest values of the first argument."""
    return [word for word in ("testValue1", "testing", "other") if word.startswith(value)]


@app.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 -- the suite's
    """A prompt with an embedded resource.

    Args:
        resourceUri: The URI of the resource.
    """
    text = "Embedded resource content for testing."
    return [
        Message(Embedded(resourceUri, text=text, mime="text/plain")),
        Message("Please process the embedded resource above."),
    ]


@app.prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt with an image."""
    return [Message(Image(PNG, "image/png")), Message("Please analyze the image above.")]


@app.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks the user first."""
    answer = await ctx.elicit("What context should be used?", Contextual, key="user_context")
    return f"Use this context: {answer['context']}"


class Deletion(TypedDict):
    confirm: bool


@app.tool
def greet(name: str) -> str:
    """Greet; never a task."""
    return f"Hello, {name}!"


@app.tool(task="optional")
async def slow_compute(seconds: float, ctx: Context, label: str = "") -> str:
    """Compute for some seconds."""
    ctx.progress(0, seconds, label or None)
    await asyncio.sleep(seconds)
    return f"Computed {label} for {seconds:g} seconds"


@app.tool(task="required")
def failing_job() -> str:
    """Fail after a second."""
    time.sleep(1)
    raise ToolError("This job always fails")


@app.tool(task="optional")
async def protocol_error_job() -> str:
    """Fail with an error of the protocol."""
    raise ToolError("The job broke", code="JOB_BROKE")


@app.tool(task="optional")
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask, then delete."""
    answer = await ctx.elicit(f"Delete {filename}?", Deletion)
    return f"Deleted {filename}" if answer["confirm"] else f"Kept {filename}"


@app.tool(task="optional")
async def multi_input(ctx: Context) -> str:
    """Ask two questions at once."""
    first, second = await ctx.together(
        ctx.elicit("What is your name?", Named), ctx.elicit("Are you sure?", Deletion)
    )
    return f"{first['name']}: {second['confirm']}"


@app.tool(task="required")
async def test_tool_with_task(user_name: Annotated[Named, Ask("What is your name?")]) -> str:
    """Ask before the task begins."""
    return f"Hello, {user_name['name']}!"


if __name__ == "__main__":
    app.run()
