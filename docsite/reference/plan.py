"""Which name is on which page of the API, in order, and what the headings say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Page:
    """A page: its file, its title, its first sentences, and lines of a module and its names."""

    file: str
    title: str
    intro: str
    names: tuple[str, ...]


MET = frozenset(
    {
        "answerback.app",
        "answerback.tools.tool_options",
        "answerback.tools.resource",
        "answerback.protocol.widget",
        "answerback.core.reply",
        "answerback.core.content",
        "answerback.rules.finding",
        "answerback.core.request_info",
        "answerback.core.peer",
        "answerback.calls.context",
        "answerback.client.connecting",
        "answerback.client.call_options",
        "answerback.client.frames",
        "answerback.client.login.login_settings",
        "answerback.dialects.seen_reply",
    }
)
"""Modules that users do not import: they only meet these classes, such as the options of a call."""
HEADINGS = {
    "AppOptions": "Options of App",
    "AsgiOptions": "Options of app.asgi",
    "ToolOptions": "Options of @app.tool",
    "ResourceOptions": "Options of @app.resource",
    "CommonOptions": "Options of @app.prompt",
    "WidgetOptions": "Options of app.widget",
    "MediaOptions": "Options of Image and Audio",
    "EmbeddedOptions": "Options of Embedded",
    "ConnectOptions": "Options of connect",
    "CallOptions": "Options of server.options",
    "LoginOptions": "Options of Login",
    "OAuthOptions": "Options of OAuth",
}
"""The headings of options; any other heading is the name."""
PAGES = (
    Page(
        "app",
        "App",
        "An `App` holds tools, resources and prompts, and serves them on every wire. "
        "[Tools](../../start/tools.md) begins with one; [start-up and "
        "state](../../guides/lifespan.md), [composition](../../guides/composition.md) and"
        " [deployment](../../guides/deployment.md) go on. The options of `@app.tool`, "
        "`@app.resource`, `@app.prompt` and `app.widget` are on [their own "
        "page](tools.md).",
        (
            "answerback: App",
            "answerback.app: AppOptions AsgiOptions",
            "answerback: Limits Icon",
            "answerback.options: TaskLimits ReplyLimits Access",
        ),
    ),
    Page(
        "tools",
        "Tools, resources and prompts",
        "The options of the decorators, and the marks for parameters. "
        "[Tools](../../start/tools.md) explains registration and types.",
        (
            "answerback.tools.tool_options: ToolOptions",
            "answerback.options: Values Task Shown",
            "answerback.tools.resource: ResourceOptions",
            "answerback.tools.tool_options: CommonOptions",
            "answerback: Message",
            "answerback.protocol.widget: WidgetOptions",
            "answerback: CSP Ask Depends AllArguments Header register_type",
        ),
    ),
    Page(
        "replies",
        "Replies and content",
        "What a tool returns and what a call ends in. [Replies](../../start/replies.md) "
        "explains them. The keys of `ToolMeta`, `ResultMeta` and `ResourceMeta` are on the page "
        "on [metadata](../metadata.md#the-keys).",
        (
            "answerback: Reply success failure",
            "answerback.core.reply: Error Cut",
            "answerback: Page Text Image Audio",
            "answerback.core.content: MediaOptions",
            "answerback: Link Embedded",
            "answerback.core.content: EmbeddedOptions",
            "answerback: Annotations ToolMeta ResultMeta ResourceMeta wrap validate",
            "answerback.rules.finding: Finding",
            "answerback.dialects: read write MalformedReply",
            "answerback.dialects.readable: render",
        ),
    ),
    Page(
        "contracts",
        "Contracts",
        "A contract decides how replies look. [Contracts](../contracts.md) compares the presets.",
        (
            "answerback: Contract",
            "answerback.contract: PRESETS STANDARD ALIGNED ENVELOPE APPS DIRECT",
        ),
    ),
    Page(
        "errors",
        "Errors",
        "The exceptions that a tool raises so that the caller reads their message. [Error"
        " codes](../errors.md) has each code on each wire; [your own "
        "exceptions](../../guides/your-own-exceptions.md) need none of these classes.",
        (
            "answerback: ToolError InvalidInput Unauthenticated Forbidden NotFound "
            "Conflict RateLimited Unavailable TimedOut Declined",
            "answerback.errors: AnswerbackError Code add_codes",
        ),
    ),
    Page(
        "context",
        "Context",
        "What a tool can ask about its call, and ask its client. [While a tool "
        "runs](../mcp.md#while-a-tool-runs) and [request "
        "data](../../guides/request-data.md) have examples.",
        (
            "answerback: Context get_context",
            "answerback.core.request_info: RequestInfo",
            "answerback.core.request_info: ClientHints Location",
            "answerback.core.peer: Abilities Log",
            "answerback.calls.context: Sample Root",
        ),
    ),
    Page(
        "middleware",
        "Middleware and observers",
        "The signature of middleware is `async def timing(call: Invocation, next: Next) -> "
        "object`, and that of an observer `def count(seen: Observation) -> None`; [middleware "
        "around calls](../../guides/call-middleware.md) explains both. `ValidReplies` checks "
        "the replies of [other frameworks](../../guides/middleware.md).",
        (
            "answerback: Invocation Next Observation",
            "answerback.middleware.asgi: ValidReplies",
            "answerback.middleware.wsgi: ValidReplies",
            "answerback.middleware.fastmcp: ValidReplies",
            "answerback.middleware.sdk: ValidReplies",
        ),
    ),
    Page(
        "client",
        "Client",
        "`connect` calls any server. [The client](../../guides/client.md) explains it.",
        (
            "answerback: connect",
            "answerback.client.connecting: ConnectOptions ConnectContext",
            "answerback.client: connect RemoteServer ManyServers",
            "answerback.client.call_options: CallOptions",
            "answerback.client.frames: ServerFacts",
            "answerback.client: RemoteTool RemoteResource RemoteTemplate RemotePrompt "
            "FilledPrompt start_task StartedTask ElicitationRequest Change BadTarget "
            "ConnectError",
        ),
    ),
    Page(
        "login",
        "Logging in from the client",
        "[Logging in from the client](../../guides/client-login.md) explains it.",
        (
            "answerback.client.login: Login",
            "answerback.client.login.login_settings: LoginOptions",
            "answerback.client.login: ClientCredentials RegisteredClient browser paste "
            "TokenStore MemoryTokens FileTokens KeyringTokens",
        ),
    ),
    Page(
        "reading",
        "Reading",
        "`read` takes any reply of any server. [Reading replies](../../guides/reading.md)"
        " explains it.",
        (
            "answerback: read",
            "answerback.dialects.seen_reply: SeenReply",
        ),
    ),
    Page(
        "auth",
        "Authentication",
        "How callers of your server log in. [Authentication](../../guides/auth.md) explains it.",
        (
            "answerback.auth: OAuth OAuthOptions Introspection TokenLookup TokenProof ApiKeys "
            "ApiKey User Authenticator Credentials Challenge Unauthorized "
            "CannotAuthenticate",
            "answerback.auth.development: DevelopmentOAuth",
        ),
    ),
    Page(
        "gates",
        "Gates",
        "What a caller must pass before a tool runs. [Gates](../../guides/gates.md) explains them.",
        (
            "answerback.gates: login scope subscription linked Refusal login_prompt "
            "subscription_prompt link_prompt Redeemed LinkRefused UsedTokens UsedFiles",
        ),
    ),
    Page(
        "models",
        "Tools for language models",
        "A server's tools in the formats of model providers. [Tools for language "
        "models](../../guides/models.md) explains them.",
        (
            "answerback.models: to_openai to_openai_responses to_anthropic to_gemini "
            "ModelTools ConversionReport ToolReport",
        ),
    ),
    Page(
        "records",
        "Records",
        "Where every reply is kept. [Records](../../guides/audit.md) explains them.",
        (
            "answerback: audit",
            "answerback.records: Records SQLite JSONL Logging OpenTelemetry Event Entry "
            "Sink Store audit",
        ),
    ),
    Page(
        "resilience",
        "Retries, breakers and limits",
        "[Retries, breakers and limits](../../guides/resilience.md) explains them.",
        ("answerback.resilience: Retry Breaker Limit BreakerStore LimitStore Clock",),
    ),
    Page(
        "testing",
        "Testing",
        "[Testing](../../start/testing.md) explains them, and the pytest plugin.",
        ("answerback.testing: TestContext DisplayClient assert_valid_reply",),
    ),
)
MERGED = {
    "ServerMethods": "RemoteServer",
    "HasRegistry": "",
    "ListedEntry": "",
    "HttpMiddleware": "",
}
"""Base classes that users do not meet, and the one class that shows what they have; "" is each."""
NOT_MADE = {
    *("Context", "Invocation", "RemoteServer", "StartedTask", "ConnectContext", "RequestInfo"),
    *("ModelTools", "ManyServers"),
}
"""Classes whose objects users get and do not make: their constructors are not shown."""
INTERNAL = {
    *("Retry.option", "Retry.policy", "Retry.wait_after", "Breaker.option", "Breaker.policy"),
    *("Breaker.enter", "Breaker.holds", "Breaker.leave", "Limit.key"),
    *("Limit.count", "Limit.check", "Limit.start", "Limit.leave", "Limit.give_back"),
    *("Limit.option", "Limit.policy", "Login.choice", "Login.records", "Login.for_server"),
    *("OAuth.options", "OAuth.metadata", "OAuth.pages", "DevelopmentOAuth.pages"),
    *("ApiKeys.security_schemes", "ModelTools.rules", "FilledPrompt.read", "ServerFacts.of"),
    *("ValidReplies.on_call_tool", "ValidReplies.applies_to", "ValidReplies.check"),
    *("ValidReplies.has_checkable_body", "Error.of", "Values.settings", "Task.settings"),
    *("Shown.settings", "Reply.encoded", "Reply.shape", "Reply.received", "Reply.contract"),
    *("ToolError.may_have_run", "ToolError.thread_goes_on", "Records.sinks"),
    *(
        "OAuth.asked_scopes",
        "Records.recorded",
        "Records.add",
        "Records.check",
        "Records.make_event",
    ),
}
"""Members that only our own packages use; no page shows them."""
