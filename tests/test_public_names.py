"""The names that users import."""

import importlib
import inspect
import pkgutil

import pytest

import answerback

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
MORE = {"Ask", "Declined", "Depends", "Header", "Icon", "Limits", "Message"} | {
    # The hook for an author's own type.
    "register_type",
}
# The types that middleware around calls and observers are written with.
AROUND = {"Invocation", "Next", "Observation"}
# The types of the metadata that hosts read.
META = {"ResourceMeta", "ResultMeta", "ToolMeta"}
# The client.
CLIENT = {"connect"}
# The origins that a widget may use.
WIDGETS = {"CSP"}


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
