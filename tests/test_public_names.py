"""The names that users import."""

import importlib
import inspect
import pkgutil

import pytest

import answerback

# DESIGN 3, and the subclasses of ToolError that its section 5 tells of.
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
# It comes with the client, which is not here yet.
LATER = {"read"}
# What MCP's features cannot be used without (questions and the answer "no", headers, icons,
# the messages of prompts), and how many calls an App lets in.
MORE = {"Ask", "Declined", "Header", "Icon", "Limits", "Message"}


def test_the_names_are_those_of_the_design() -> None:
    assert set(answerback.__all__) == (DESIGNED - LATER) | MORE


def test_no_public_name_is_a_module_s_too() -> None:
    """Or whoever imports the module first would change what the name means."""
    modules = {module.name for module in pkgutil.iter_modules(answerback.__path__)}

    assert modules & set(answerback.__all__) == set()


def test_the_names_are_sorted_and_each_is_there_once() -> None:
    assert list(answerback.__all__) == sorted(set(answerback.__all__))


@pytest.mark.parametrize("name", answerback.__all__)
def test_every_name_can_be_imported_and_is_the_one_of_its_module(name: str) -> None:
    value = getattr(answerback, name)

    assert value.__module__.startswith("answerback.")
    assert getattr(importlib.import_module(value.__module__), name) is value


@pytest.mark.parametrize("name", answerback.__all__)
def test_every_name_says_what_it_is(name: str) -> None:
    value = getattr(answerback, name)
    written = inspect.getdoc(value) or ""

    assert written or name in UNDOCUMENTED


# Their names say all there is to say.
UNDOCUMENTED = {"Context", "Text"}


def test_every_public_error_is_a_tool_error() -> None:
    values = [getattr(answerback, name) for name in answerback.__all__]
    errors = [value for value in values if isinstance(value, type) and issubclass(value, Exception)]

    assert errors
    assert all(issubclass(error, answerback.ToolError) for error in errors)


def test_dir_shows_the_names_before_they_are_used() -> None:
    assert set(answerback.__all__) <= set(dir(answerback))
    assert dir(answerback) == sorted(dir(answerback))


def test_another_name_is_an_attribute_error_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'answerback' has no attribute 'Apq'"):
        _ = answerback.Apq
    with pytest.raises(ImportError):
        exec("from answerback import Apq", {})


def test_the_version_is_the_distribution_s() -> None:
    from importlib.metadata import version

    assert answerback.__version__ == version("answerback")
