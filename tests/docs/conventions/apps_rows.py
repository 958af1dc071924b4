"""Checks of the rows about `apps`."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, TypeAlias, TypedDict, get_type_hints

import pytest
from tests.docs.conventions.checks import (
    PACKAGE,
    ROOT,
    app_of,
    ask_mcp,
    listed,
    request,
    rows_of,
    sent,
    text_of,
)
from tests.gates.named_users import NamedUsers, gated_app, rpc

import answerback
from answerback import (
    App,
    Audio,
    Context,
    Embedded,
    Image,
    Reply,
    ResourceMeta,
    ResultMeta,
    Text,
    ToolMeta,
    failure,
    success,
)
from answerback.auth import User
from answerback.core.content import Block
from answerback.core.metadata import KEYS
from answerback.gates import (
    link_prompt,
    linked,
    login,
    login_prompt,
    scope,
    subscription,
    subscription_prompt,
)
from answerback.options import Access

row = rows_of("apps")
META = {"com.example/a": 1}
WIDGET = "ui://widget/your-widget.html"
PAGE = "https://app.example.com/page"
ANNA = User(subject="anna", issuer="https://id.example.com")


class AccountBase(TypedDict):
    id: str


class AccountBalancesContent(TypedDict):
    accounts: list[AccountBase]


AccountBalancesResponse: TypeAlias = Reply[AccountBalancesContent, ResultMeta]
BALANCES: AccountBalancesContent = {"accounts": [{"id": "a"}]}


def balances() -> AccountBalancesResponse:
    return success("Found 1 account", BALANCES, {"openai/outputTemplate": WIDGET})


def crash() -> AccountBalancesResponse:
    raise RuntimeError("at localhost:5432")


def block(made: Any) -> Any:
    """A block as MCP has it."""
    return success(content=[made]).to("mcp")["content"][0]


def never(ctx: Context) -> bool:
    return False


def gated(*gates: Any) -> App:
    """An app whose only tool `count` has these gates."""
    app = gated_app(contract="apps", access=Access(challenge="result"))

    @app.tool(requires=list(gates))
    def count(n: int) -> int:
        return n

    return app


def refusal(app: App, user: str = "", **arguments: Any) -> Any:
    response = rpc(app, "tools/call", user, name="count", arguments=arguments)
    return response.json()["result"]["_meta"]


def refusal_code(app: App, user: str = "", **arguments: Any) -> Any:
    return refusal(app, user, **arguments)["answerback/refusal"]["code"]


def code_of(reply: Reply[Any]) -> str | None:
    return None if reply.error is None else reply.error.code


@row("createSuccessResponse(text, structuredContent, meta)")
def _() -> None:
    found = success("Found 1 account", BALANCES, META)

    assert (found.data, found.meta) == (BALANCES, META)
    result = sent(app_of(balances, contract="apps"), "balances")
    assert (text_of(result), result["structuredContent"]) == ("Found 1 account", BALANCES)


@row("createErrorResponse(message, meta)")
def _() -> None:
    result = failure("Network timeout", meta=META).to("mcp")

    assert (result["isError"], text_of(result)) == (True, "Network timeout")
    assert result["_meta"]["com.example/a"] == 1


@row("createTextContent(text, meta)")
def _() -> None:
    assert block(Text("Hello", META)) == {"type": "text", "text": "Hello", "_meta": META}


@row("createImageContent(data, mimeType, meta)")
def _() -> None:
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png", "_meta": META}

    assert block(Image("aGVsbG8=", "image/png", META)) == image
    assert block(Image(b"hello", "image/png", META)) == image


@row("createResourceContent(uri, {text or blob, mimeType}, meta)")
def _() -> None:
    resource = {"uri": WIDGET, "mimeType": "text/html", "text": "<p>"}

    found = block(Embedded(WIDGET, text="<p>", mime="text/html", meta=META))

    assert found == {"type": "resource", "resource": resource, "_meta": META}
    assert block(Embedded(WIDGET, blob=b"hello"))["resource"]["blob"] == "aGVsbG8="


@row("lib/utils/mcp-response-helpers.ts")
def _() -> None:
    assert {"success", "failure", "Text", "Image", "Audio", "Embedded"} <= set(answerback.__all__)
    assert (PACKAGE / "core" / "reply.py").exists()
    assert (PACKAGE / "core" / "content.py").exists()


@row("resource._meta")
def _() -> None:
    inside = {"openai/widgetDescription": "Shows it."}
    app = app_of(contract="apps")

    @app.resource(WIDGET, content_meta=inside)
    def widget() -> str:
        return "<div></div>"

    found = block(Embedded(WIDGET, text="<p>", content_meta=inside))
    contents = ask_mcp(app, "resources/read", uri=WIDGET)["contents"]

    assert found["resource"]["_meta"] == inside
    assert contents[0]["_meta"] == inside


@row("MCPContent with the literal type")
def _() -> None:
    blocks: list[Block] = [
        Text("a"),
        Image(b"x", "image/png"),
        Audio(b"x", "audio/wav"),
        Embedded("ui://a", "a"),
    ]

    assert [each.type for each in blocks] == ["text", "image", "audio", "resource"]


@row("MCPToolResponse<TStructuredContent, TMetadata>")
def _() -> None:
    def with_data_only() -> Reply[AccountBalancesContent]:
        return success(data=BALANCES)

    app = app_of(balances, with_data_only, contract="apps")

    for name in ("balances", "with_data_only"):
        assert listed(app, name)["outputSchema"]["required"] == ["accounts"]


@row("OpenAIResponseMetadata")
def _() -> None:
    assert "openai/outputTemplate" in get_type_hints(ResultMeta)
    assert "openai/outputTemplate" in get_type_hints(ToolMeta)
    assert "openai/widgetCSP" in get_type_hints(ResourceMeta)


@row("lib/types/mcp-responses.ts")
def _() -> None:
    files = ("core/reply.py", "core/content.py", "core/metadata.py")

    assert all((PACKAGE / name).exists() for name in files)


@row("lib/types/tool-responses.ts")
def _() -> None:
    schema = listed(app_of(balances, contract="apps"), "balances")["outputSchema"]

    assert schema["properties"]["accounts"]["items"]["required"] == ["id"]


@row("AccountBalancesResponse = MCPToolResponse<…>")
def _() -> None:
    result = sent(app_of(balances, contract="apps"), "balances")

    assert result["_meta"]["openai/outputTemplate"] == WIDGET


@row("app/mcp/route.ts")
def _() -> None:
    app = app_of(balances, contract="apps")

    result = ask_mcp(app, "tools/call", name="balances", arguments={})

    assert callable(app.run)
    assert result["structuredContent"] == BALANCES


@row("server.registerTool(name, {title, description, _meta}, fn)")
def _() -> None:
    app = app_of(contract="apps")
    meta: ToolMeta = {"openai/toolInvocation/invoking": "Loading..."}
    app.add_tool(balances, name="your_tool", title="Your Tool", description="It does", meta=meta)

    entry = listed(app, "your_tool")

    assert (entry["title"], entry["description"]) == ("Your Tool", "It does")
    assert entry["_meta"]["openai/toolInvocation/invoking"] == "Loading..."


@row('inputSchema: {param1: z.string().describe("…")}')
def _() -> None:
    def your_tool(param1: Annotated[str, "Parameter description"]) -> str:
        return param1

    schema = listed(app_of(your_tool), "your_tool")["inputSchema"]["properties"]["param1"]

    assert (schema["type"], schema["description"]) == ("string", "Parameter description")


@row("securitySchemes")
def _() -> None:
    schemes = [{"type": "oauth2", "scopes": ["feature:read"]}]
    app = app_of(contract="apps")
    app.add_tool(balances, meta={"securitySchemes": schemes})

    assert listed(app, "balances")["securitySchemes"] == schemes
    app = gated(login(), scope("feature:read"))
    assert isinstance(app.auth, NamedUsers)
    app.auth.pages = {}  # As OAuth has it.
    (entry,) = rpc(app, "tools/list").json()["result"]["tools"]
    assert entry["securitySchemes"] == schemes


@row("session, session.userId")
def _() -> None:
    app = gated_app()

    @app.tool
    def who(ctx: Context) -> str:
        return "nobody" if ctx.user is None else str(ctx.user.subject)

    for user, name in (("anna", "anna"), ("", "nobody")):
        result = rpc(app, "tools/call", user, name="who", arguments={}).json()["result"]
        assert text_of(result) == name


@row("req.headers")
def _() -> None:
    def agent(ctx: Context) -> str:
        headers: Any = ctx.request.headers
        return str(headers["user-agent"])

    response = request(app_of(agent), "POST", "/functions/agent", {}, User_Agent="ChatGPT")

    assert response.json() == {"result": "ChatGPT"}


@row("hasActiveSubscription(userId)")
def _() -> None:
    asked: list[str] = []

    def has_plan(ctx: Context) -> bool:
        asked.append(ctx.user.subject)
        return False

    app = gated(login(), subscription("pro", check=has_plan))

    assert refusal_code(app, "anna", n=1) == "SUBSCRIPTION_REQUIRED"
    assert asked == ["anna"]


@row("UserService.getUserAccessTokens(userId)")
def _() -> None:
    app = gated(login(), linked("plaid", check=never))

    assert refusal_code(app, "anna", n=1) == "LINK_REQUIRED"


@row("createLoginPromptResponse(featureName)")
def _() -> None:
    assert code_of(login_prompt("your feature")) == "LOGIN_REQUIRED"
    assert refusal_code(gated(login()), n=1) == "LOGIN_REQUIRED"


@row("createSubscriptionRequiredResponse(featureName, userId)")
def _() -> None:
    prompt = subscription_prompt("your feature", ANNA, url=PAGE)

    assert code_of(prompt) == "SUBSCRIPTION_REQUIRED"
    assert prompt.meta["answerback/refusal"]["url"].startswith(PAGE)


@row("await createPlaidRequiredResponse(userId, headers)")
def _() -> None:
    prompt = asyncio.run(link_prompt(ANNA, {"user-agent": "ChatGPT"}, service="plaid"))

    assert code_of(prompt) == "LINK_REQUIRED"
    assert code_of(asyncio.run(link_prompt(ANNA, {}))) == "LINK_REQUIRED"


@row("the check of three tiers at the start of a handler")
def _() -> None:
    tiers = (login(), subscription("pro", check=never), linked("plaid", check=never))

    assert refusal_code(gated(*tiers), n=1) == "LOGIN_REQUIRED"
    assert refusal_code(gated(*tiers), "anna", n=1) == "SUBSCRIPTION_REQUIRED"


@row("lib/utils/auth-responses.ts")
def _() -> None:
    assert (PACKAGE / "gates" / "prompts.py").exists()


@row("mcp/www_authenticate")
def _() -> None:
    assert "mcp/www_authenticate" in refusal(gated(login()), n=1)
    assert "mcp/www_authenticate" in refusal(gated(login(), scope("feature:read")), "anna", n=1)


@row("pnpm typecheck")
def _() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert (ROOT / "tests" / "typing" / "test_pyright.py").exists()


@row("1. define structured content type")
def _() -> None:
    assert "outputSchema" in listed(app_of(balances, contract="apps"), "balances")


@row("2. replace manual response construction")
def _() -> None:
    def by_hand() -> Any:
        return {"content": [{"type": "text", "text": "Hello"}], "structuredContent": {"data": []}}

    def built() -> Any:
        return success("Hello", {"data": []})

    app = app_of(by_hand, built, contract="apps")

    assert sent(app, "by_hand") == sent(app, "built")


@row("3. replace auth responses")
def _() -> None:
    def tool() -> Reply[AccountBalancesContent]:
        return login_prompt("your feature")

    result = sent(app_of(tool, contract="apps"), "tool")

    assert result["_meta"]["answerback/refusal"]["code"] == "LOGIN_REQUIRED"


@row("4. run pnpm typecheck")
def _() -> None:
    def wrong() -> AccountBalancesResponse:
        broken: Any = {"accounts": 5}
        return success("Found them", broken)

    assert code_of(asyncio.run(app_of(wrong).call("wrong"))) == "INVALID_OUTPUT"


@row("the keys of tools, of resources and of results are one type")
def _() -> None:
    border: Any = {"openai/widgetPrefersBorder": True}

    assert success("a", meta=border).meta == border
    with pytest.raises(ValueError, match="does not belong on a tool"):
        app_of().add_tool(balances, meta=border)


@row('"… and more" keys')
def _() -> None:
    names = {key.name for key in KEYS}

    assert {"openai/widgetDomain", "openai/closeWidget", "openai/fileParams", "ui"} <= names


@row("Partial<OpenAIResponseMetadata> refuses any other key")
def _() -> None:
    misspelt: Any = {"openai/outputTemplat": WIDGET}

    assert success("a", meta=META).meta == META
    with pytest.warns(UserWarning, match="did you mean 'openai/outputTemplate'"):
        success("a", meta=misspelt)


@row("metadata is the second argument of createErrorResponse")
def _() -> None:
    meta: Any = META

    with pytest.raises(TypeError, match="pass metadata as meta="):
        failure("no", meta)


@row("data of an image is base64 text")
def _() -> None:
    assert Image(b"hello", "image/png") == Image("aGVsbG8=", "image/png")


@row("the catch path sends error.message")
def _() -> None:
    result = sent(app_of(crash, contract="apps"), "crash")

    assert result["isError"] is True
    assert "localhost" not in json.dumps(result)


@row("widgetDescription, widgetPrefersBorder and widgetCSP")
def _() -> None:
    csp = {"connect_domains": ["https://api.example.com"], "resource_domains": []}
    meta: Any = {
        "openai/widgetDescription": "Shows it.",
        "openai/widgetPrefersBorder": True,
        "openai/widgetCSP": csp,
    }
    app = app_of(contract="apps")

    @app.resource(WIDGET, content_meta=meta)
    def widget() -> str:
        return "<div></div>"

    assert success("a", meta=meta).to("mcp")["_meta"] == meta
    assert ask_mcp(app, "resources/read", uri=WIDGET)["contents"][0]["_meta"] == meta


@row("the names of types, such as YourFeatureResponse")
def _() -> None:
    assert "Reply" in answerback.__all__
    assert [name for name in answerback.__all__ if name.endswith("Response")] == []


@row("content objects must not be built by hand")
def _() -> None:
    def by_hand() -> Any:
        return {"content": [{"type": "text", "text": "Hello"}]}

    assert text_of(sent(app_of(by_hand, contract="apps"), "by_hand")) == "Hello"


@row("the prompts are widgets of their own")
def _() -> None:
    def tool() -> Reply[AccountBalancesContent]:
        return login_prompt("your feature")

    app = app_of(contract="apps")
    app.resource(WIDGET, name="page")(lambda: "<p>")
    app.add_tool(tool, meta={"openai/outputTemplate": WIDGET})

    result = ask_mcp(app, "tools/call", name="tool", arguments={})

    assert result["isError"] is True
    assert result["_meta"]["openai/outputTemplate"] == WIDGET


@row("userId is an argument of the prompts")
def _() -> None:
    url = subscription_prompt("your feature", ANNA, url=PAGE).meta["answerback/refusal"]["url"]

    assert "token=" in url
    assert "anna" not in url


@row("the tiers are checked inside the handler")
def _() -> None:
    assert refusal_code(gated(login()), n="not a number") == "LOGIN_REQUIRED"


@row("structured content without a type works")
def _() -> None:
    def tool() -> Any:
        return success("Hello", {"randomField": "value"})

    app = app_of(tool, contract="apps")

    assert sent(app, "tool")["structuredContent"] == {"randomField": "value"}
    assert "outputSchema" not in listed(app, "tool")
