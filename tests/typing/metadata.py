"""Types of replies, blocks and metadata. Checked by mypy and pyright, not run.

A line with `type: ignore` is one that both must reject: an unused one is an error too.
"""

from typing import Any, Literal, TypeAlias, TypedDict, assert_type

from answerback import (
    App,
    Audio,
    Context,
    Embedded,
    Image,
    Link,
    Reply,
    ResourceMeta,
    ResultMeta,
    Text,
    ToolMeta,
    failure,
    success,
)

app = App("typed", contract="apps")


class Account(TypedDict):
    id: str
    balance: float


class AccountBalances(TypedDict):
    accounts: list[Account]
    totalBalance: float
    lastUpdated: str


class AccountMeta(ResultMeta, total=False):
    account_ids: list[str]


AccountBalancesResponse: TypeAlias = Reply[AccountBalances, AccountMeta]

# The keys of a tool.
tool_meta: ToolMeta = {
    "ui": {"resourceUri": "ui://widget/accounts.html", "visibility": ["model", "app"]},
    "ui/resourceUri": "ui://widget/accounts.html",
    "securitySchemes": [{"type": "noauth"}, {"type": "oauth2", "scopes": ["accounts:read"]}],
    "openai/outputTemplate": "ui://widget/accounts.html",
    "openai/widgetAccessible": True,
    "openai/visibility": "public",
    "openai/toolInvocation/invoking": "Loading…",
    "openai/toolInvocation/invoked": "Done",
    "openai/fileParams": ["statement"],
}
misspelt: ToolMeta = {"openai/outputTemplat": "ui://a"}  # type: ignore[typeddict-unknown-key]
wrong_value: ToolMeta = {"openai/widgetAccessible": "yes"}  # type: ignore[typeddict-item]
wrong_choice: ToolMeta = {"openai/visibility": "hidden"}  # type: ignore[typeddict-item]
wrong_scheme: ToolMeta = {"securitySchemes": [{"type": "apiKey"}]}  # type: ignore[misc, list-item]
csp_on_tool: ToolMeta = {"ui": {"csp": {}}}  # type: ignore[typeddict-unknown-key]

# The keys of a widget's resource and of its content.
resource_meta: ResourceMeta = {
    "ui": {
        "csp": {
            "connectDomains": ["https://api.example.com"],
            "resourceDomains": [],
            "frameDomains": [],
            "baseUriDomains": [],
        },
        "permissions": {"camera": {}, "microphone": {}, "geolocation": {}, "clipboardWrite": {}},
        "domain": "accounts.example.com",
        "prefersBorder": True,
    },
    "openai/widgetDescription": "The balances of all accounts.",
    "openai/widgetPrefersBorder": True,
    "openai/widgetCSP": {
        "connect_domains": ["https://api.example.com"],
        "resource_domains": [],
        "frame_domains": [],
        "redirect_domains": ["https://pay.example.com"],
    },
    "openai/widgetDomain": "https://accounts.example.com",
}
camel_case: ResourceMeta = {"openai/widgetCSP": {"connectDomains": []}}  # type: ignore[typeddict-unknown-key]
border: ResourceMeta = {"ui": {"prefersBorder": "yes"}}  # type: ignore[typeddict-item]

# The keys of a result.
challenge: ResultMeta = {"mcp/www_authenticate": ['Bearer realm="accounts"']}
one_challenge: ResultMeta = {"mcp/www_authenticate": "Bearer"}
no_challenge: ResultMeta = {"mcp/www_authenticate": 401}  # type: ignore[typeddict-item]

# Tools and resources take them.


@app.resource("ui://widget/accounts.html", meta=resource_meta, content_meta=resource_meta)
def accounts_page() -> Embedded:
    return Embedded("ui://widget/accounts.html", text="<p>", content_meta=resource_meta)


@app.tool(meta=tool_meta)
def get_account_balances(bank: str) -> AccountBalancesResponse:
    if not bank:
        return failure("no bank", meta={"mcp/www_authenticate": "Bearer"})
    return success(
        "Found 1 account",
        {"accounts": [{"id": "1", "balance": 5}], "totalBalance": 5, "lastUpdated": "now"},
        {"openai/outputTemplate": "ui://widget/accounts.html", "account_ids": ["1"]},
    )


@app.tool(meta={"securitySchemes": [{"type": "oauth2", "scopes": ["accounts:read"]}]})
def without_meta() -> AccountBalancesResponse:
    return success("none", AccountBalances(accounts=[], totalBalance=0, lastUpdated="now"))


@app.tool
def declared_without_meta(meta: AccountMeta) -> Reply[Account]:
    """`Reply[Data]` takes any metadata."""
    return success("one", {"id": "1", "balance": 5}, meta)


def without_text() -> Reply[Account]:
    return success({"id": "1", "balance": 5})


def reads(reply: AccountBalancesResponse, meta: AccountMeta) -> None:
    assert_type(reply.meta, AccountMeta)
    assert_type(reply.meta.get("account_ids"), list[str] | None)
    assert_type(reply.meta.get("openai/outputTemplate"), str | None)
    assert_type(success("a", 5, meta), Reply[int, AccountMeta])
    assert_type(success("a", 5, meta=meta), Reply[int, AccountMeta])
    assert_type(success(data=5, meta=meta), Reply[int, AccountMeta])
    assert_type(success("a", meta=meta), Reply[Any, AccountMeta])
    assert_type(failure("a", meta=meta), Reply[Any, AccountMeta])
    assert_type(success("a", 5), Reply[int])
    assert_type(success("a", 5).meta, Any)
    assert_type(failure("a"), Reply[Any])


def rejected(meta: AccountMeta) -> None:
    success("a", 5, "meta")  # type: ignore[call-overload]
    failure("a", meta=["a"])  # type: ignore[call-overload]
    failure("a", meta)  # type: ignore[call-overload]
    meta["openai/outputTemplate"] = 5  # type: ignore[typeddict-item]


def misspelt_key() -> AccountBalancesResponse:
    data: AccountBalances = {"accounts": [], "totalBalance": 0, "lastUpdated": "now"}
    return success("a", data, {"openai/outputTemplat": "ui://a"})  # type: ignore[typeddict-unknown-key]


def misspelt_data() -> Reply[Account]:
    return success("a", {"id": "1", "balanc": 5})  # type: ignore[typeddict-item, typeddict-unknown-key]


def missing_data() -> Reply[Account]:
    return success("a", {"id": "1"})  # type: ignore[typeddict-item]


def wrong_data() -> Reply[Account]:
    return success("a", {"id": 1, "balance": 5})  # type: ignore[typeddict-item]


# Blocks.
Image("aGVsbG8=", "image/png", alt="base64 text", meta=resource_meta)
Image(b"hello", "image/png")
Image(b"hello", "image/png", {"a": 1})
Text("hello", {"a": 1})
Image.open("a.png", alt="a", caption="b")
Audio("aGVsbG8=", "audio/wav")
Embedded("file:///a", blob="aGVsbG8=", mime="image/png", meta={"a": 1})
Text("a", meta=challenge)
Image(5, "image/png")  # type: ignore[arg-type]
Image(b"a", "image/png", altText="a")  # type: ignore[call-arg]
Image.open("a.png", altText="a")  # type: ignore[call-arg]
Embedded("file:///a", blob=5)  # type: ignore[arg-type]


def by_type(block: Text | Image | Audio | Link | Embedded) -> str:
    """The literal types tell the blocks apart."""
    if block.type == "image":
        assert_type(block, Image)
        assert_type(block.data, bytes)
        return block.mime
    match block.type:
        case "text":
            assert_type(block, Text)
            return block.text
        case "audio":
            assert_type(block, Audio)
            return block.mime
        case "resource_link":
            assert_type(block, Link)
            return block.uri
        case "resource":
            assert_type(block, Embedded)
            assert_type(block.blob, bytes | None)
            return block.uri


assert_type(Text("a").type, Literal["text"])


@app.tool
def greet(ctx: Context) -> str:
    hints = ctx.request.hints
    assert_type(hints.locale, str | None)
    if hints.location is not None:
        assert_type(hints.location.city, str | None)
        assert_type(hints.location.latitude, float | None)
    return hints.user_agent or "unknown"
