"""The names that users import, and the modules that they import them from."""

import importlib
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import answerback

ROOT = Path(__file__).parent.parent

# The designed names, and the subclasses of ToolError.
DESIGNED = {
    "Annotations",
    "App",
    "Audio",
    "Conflict",
    "Context",
    "Contract",
    "Embedded",
    "Forbidden",
    "Image",
    "InvalidInput",
    "Link",
    "NotFound",
    "RateLimited",
    "Reply",
    "Text",
    "TimedOut",
    "ToolError",
    "Unauthenticated",
    "Unavailable",
    "audit",
    "failure",
    "read",
    "success",
    "validate",
    "wrap",
}
# Names that MCP's features need (questions and their refusal, headers, icons, prompt messages),
# the limits of an App, and the dependencies of its tools.
MORE = {"AllArguments", "Ask", "Declined", "Depends", "Header", "Icon", "Limits", "Message"} | {
    # The hook for an author's own type.
    "register_type",
    # For a helper that has no parameter for the context.
    "get_context",
    # A part of a long list, and the cursor of the next one.
    "Page",
}
# The types that middleware around calls and observers are written with.
AROUND = {"Invocation", "Next", "Observation"}
# The types of the metadata that hosts read.
META = {"ResourceMeta", "ResultMeta", "ToolMeta"}
# The client.
CLIENT = {"connect"}
# The origins that a widget may use.
WIDGETS = {"CSP"}


# The other modules that users import from: all names in `__all__`. A new module or name is a
# decision, and stands in CHANGELOG.md.
MODULES = {
    "answerback.auth": {
        *("ApiKey", "ApiKeys", "Authenticator", "CannotAuthenticate", "Challenge", "Credentials"),
        *("Introspection", "OAuth", "OAuthOptions", "TokenLookup", "TokenProof", "Unauthorized"),
        "User",
    },
    "answerback.client": {
        *("BadTarget", "Change", "ConnectError", "ElicitationRequest", "FilledPrompt"),
        *("RemotePrompt", "RemoteResource", "RemoteServer", "RemoteTemplate", "RemoteTool"),
        *("ManyServers", "StartedTask", "connect", "start_task"),
    },
    "answerback.client.login": {
        *("ClientCredentials", "FileTokens", "KeyringTokens", "Login", "MemoryTokens"),
        *("RegisteredClient", "TokenStore", "browser", "paste"),
    },
    "answerback.gates": {
        *("LinkRefused", "Redeemed", "Refusal", "UsedFiles", "UsedTokens", "link_prompt"),
        *("linked", "login", "login_prompt", "scope", "subscription", "subscription_prompt"),
    },
    "answerback.models": {
        *("ConversionReport", "ModelTools", "ToolReport", "to_anthropic", "to_gemini"),
        *("to_openai", "to_openai_responses"),
    },
    "answerback.options": {"Access", "ReplyLimits", "Shown", "Task", "TaskLimits", "Values"},
    "answerback.records": {
        *("Entry", "Event", "JSONL", "Logging", "OpenTelemetry", "Records", "SQLite", "Sink"),
        *("Store", "audit"),
    },
    "answerback.resilience": {"Breaker", "BreakerStore", "Clock", "Limit", "LimitStore", "Retry"},
    "answerback.testing": {"DisplayClient", "TestContext", "assert_valid_reply"},
}
# Modules that the library shares with its users: the names that are for users.
SHARED = {
    "answerback.auth.development": {"DevelopmentOAuth"},
    "answerback.contract": {"ALIGNED", "APPS", "DIRECT", "ENVELOPE", "PRESETS", "STANDARD"},
    "answerback.dialects": {"MalformedReply", "read", "write"},
    "answerback.dialects.readable": {"render"},
    "answerback.errors": {"AnswerbackError", "Code", "add_codes"},
    "answerback.middleware.asgi": {"ValidReplies"},
    "answerback.middleware.fastmcp": {"ValidReplies"},
    "answerback.middleware.sdk": {"ValidReplies"},
    "answerback.middleware.wsgi": {"ValidReplies"},
}
PUBLIC = {"answerback": {*answerback.__all__, "__version__"}, **MODULES, **SHARED}

_IMPORT = re.compile(
    r"^ *from (answerback(?:\.\w+)*) import (\([^)]*\)|[^\n#]*)|^ *import (answerback[\w.]*)", re.M
)
_MENTION = re.compile(r"\b(?:of|in|from)\s+`(answerback(?:\.\w+)+)`")
PAGES = sorted(
    [
        *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
        *ROOT.glob("src/answerback/cli/new_project/**/*.txt"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.py"),
        *ROOT.glob("tests/typing/*.py"),
    ]
)


def imports_in(text: str) -> set[tuple[str, str]]:
    """The names that *text* imports from us, each with its module; "" for a module itself."""
    found = set()
    for source, names, module in _IMPORT.findall(text):
        for name in names.strip("()").split(","):
            if word := name.split(" as ")[0].strip():
                found.add((source, word))
        if module:
            found.add((module, ""))
    return found


@pytest.mark.parametrize("module", MODULES)
def test_a_public_module_has_exactly_the_names_of_the_table(module: str) -> None:
    assert set(importlib.import_module(module).__all__) == MODULES[module]


@pytest.mark.parametrize("module", SHARED)
def test_a_shared_module_has_the_names_of_the_table(module: str) -> None:
    assert SHARED[module] <= vars(importlib.import_module(module)).keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_or_example_imports_only_public_names(page: Path) -> None:
    text = page.read_text()

    found = imports_in(text) | {(module, "") for module in _MENTION.findall(text)}

    assert {module for module, _ in found} <= PUBLIC.keys()
    assert {(module, name) for module, name in found if name not in {*PUBLIC[module], ""}} == set()


def test_the_search_for_imports_finds_each_form() -> None:
    text = """
    from answerback import App
    from answerback.gates import (
        login,
        scope as needs,
    )
    import answerback.tasks
    """

    assert imports_in(text) == {
        ("answerback", "App"),
        ("answerback.gates", "login"),
        ("answerback.gates", "scope"),
        ("answerback.tasks", ""),
    }


def test_the_public_names_are_those_of_the_design() -> None:
    assert set(answerback.__all__) == DESIGNED | MORE | AROUND | META | WIDGETS | CLIENT


def test_no_public_name_is_also_the_name_of_a_module() -> None:
    """Otherwise importing the module would replace the name in the package."""
    modules = {module.name for module in pkgutil.iter_modules(answerback.__path__)}

    assert modules & set(answerback.__all__) == set()


def test_the_public_names_are_sorted_and_unique() -> None:
    assert list(answerback.__all__) == sorted(set(answerback.__all__))


@pytest.mark.parametrize("name", answerback.__all__)
def test_every_public_name_is_the_object_of_its_module(name: str) -> None:
    value = getattr(answerback, name)

    assert value.__module__.startswith("answerback.")
    assert getattr(importlib.import_module(value.__module__), name) is value


@pytest.mark.parametrize("name", answerback.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    value = getattr(answerback, name)
    docstring = inspect.getdoc(value) or ""

    assert docstring or name in UNDOCUMENTED


# Their names need no explanation.
UNDOCUMENTED = {"Context", "Text"}


def test_every_public_error_is_a_tool_error() -> None:
    values = [getattr(answerback, name) for name in answerback.__all__]
    errors = [value for value in values if isinstance(value, type) and issubclass(value, Exception)]

    assert errors
    assert all(issubclass(error, answerback.ToolError) for error in errors)


def test_dir_lists_the_public_names_before_their_first_use() -> None:
    assert set(answerback.__all__) <= set(dir(answerback))
    assert dir(answerback) == sorted(dir(answerback))


def test_an_unknown_name_raises_attribute_error_and_import_error() -> None:
    with pytest.raises(AttributeError, match="module 'answerback' has no attribute 'Apq'"):
        _ = answerback.Apq
    with pytest.raises(ImportError):
        exec("from answerback import Apq", {})


def test_the_version_is_that_of_the_distribution() -> None:
    from importlib.metadata import version

    assert answerback.__version__ == version("answerback")
