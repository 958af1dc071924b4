"""Values of URI templates that would leave a folder do not reach the function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from answerback import App, Embedded, Reply, ToolError, connect

ERAS = ["2025-11-25", "2026-07-28"]
ESCAPES = [
    "..%2F..%2Fetc%2Fpasswd",
    "../etc/passwd",
    "%2E%2E%2Fetc",
    "..",
    "a/../../b",
    "a%5C..%5C..%5Cb",
    "..%5Cwindows",
    "/etc/passwd",
    "%2Fetc%2Fpasswd",
    "%5C%5Cserver%5Cshare",
    "C:%5Cwindows",
    "C:windows",
    "name%00.txt",
    "..%00",
]
HARMLESS = {
    "a/b": "a/b",
    "a%2Fb": "a/b",
    "a/../b": "a/../b",
    "a%5Cb": "a\\b",
    "1.0..2.0": "1.0..2.0",
    "...": "...",
    ".hidden": ".hidden",
    "%252E%252E%252Fx": "%2E%2E%2Fx",
    "2026-01-01T10:00": "2026-01-01T10:00",
}


def app_with_files(annotation: Any = str, **options: Any) -> tuple[App, list[Any]]:
    app = App("files")
    seen: list[Any] = []

    def document(name: Any) -> str:
        seen.append(name)
        return "found"

    document.__annotations__["name"] = annotation
    app.resource("files://docs/{+name}", **options)(document)
    return app, seen


def read(app: App, uri: str, era: str = ERAS[0]) -> Reply[Any]:
    with connect(app, version=era) as server:
        return server.read(uri)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("value", ESCAPES)
def test_a_value_that_leaves_its_folder_is_answered_as_an_unknown_resource(
    value: str, era: str
) -> None:
    app, seen = app_with_files()

    escaping = read(app, f"files://docs/{value}", era).error
    unknown = read(app, "files://elsewhere/a", era).error

    assert seen == []
    assert escaping is not None
    assert unknown is not None
    shown = str(escaping).replace(f"files://docs/{value}", "URI")
    assert shown == str(unknown).replace("files://elsewhere/a", "URI")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("value", HARMLESS)
def test_a_value_that_stays_in_its_folder_reaches_the_function_decoded_once(
    value: str, era: str
) -> None:
    app, seen = app_with_files()

    reply = read(app, f"files://docs/{value}", era)

    assert reply.ok
    assert seen == [HARMLESS[value]]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Path, "%20..%2Fetc"),
        (list[str], "a,.."),
        (list[str], "a%2C..%2Fetc"),
        (list[str], '["a","../etc"]'),
        (dict[str, str], '{"a":"../etc"}'),
        (dict[str, str], '{"../etc":"a"}'),
        (dict[str, list[str]], r'{"a":["\u002e./etc"]}'),
        (bytes, "../etc"),
    ],
)
def test_a_part_of_a_value_that_leaves_its_folder_is_refused(annotation: Any, value: str) -> None:
    app, seen = app_with_files(annotation)

    reply = read(app, f"files://docs/{value}")

    assert not reply.ok
    assert seen == []


def test_the_items_of_a_list_in_the_template_are_checked_one_by_one() -> None:
    app = App("files")
    seen: list[Any] = []

    @app.resource("files://docs{/parts*}")
    def document(parts: list[str]) -> str:
        seen.append(parts)
        return "found"

    escaping, harmless = read(app, "files://docs/a/..%2F.."), read(app, "files://docs/a/b%2Fc")

    assert not escaping.ok
    assert harmless.ok
    assert seen == [["a", "b/c"]]


@pytest.mark.parametrize("value", ESCAPES)
def test_an_author_can_allow_any_value_of_a_named_parameter(value: str) -> None:
    app, seen = app_with_files(allow_paths=("name",))

    assert read(app, f"files://docs/{value}").ok
    assert len(seen) == 1


def test_allowing_one_parameter_leaves_the_others_checked() -> None:
    app = App("files")

    @app.resource("git://{repository}/{+range}", allow_paths=("range",))
    def difference(repository: str, range: str) -> str:
        return f"{repository} {range}"

    assert read(app, "git://ab/../..").ok
    assert not read(app, "git://..%2Fx/a").ok


def test_a_template_refuses_for_itself_and_another_may_serve_the_uri() -> None:
    app, seen = app_with_files()

    @app.resource("files://docs/{+range}", name="other", allow_paths=("range",))
    def difference(range: str) -> str:
        return range

    assert read(app, "files://docs/../x").ok
    assert seen == []


@pytest.mark.parametrize("era", ERAS)
def test_a_completion_gets_the_text_as_it_was_typed(era: str) -> None:
    app, _ = app_with_files()
    app.completion("files://docs/{+name}", "name")(echo)

    with connect(app, version=era) as server:
        found = server.complete("files://docs/{+name}", "name", "../..")

    assert found == ["../.."]


def echo(value: str) -> list[str]:
    return [value]


def test_a_client_cannot_subscribe_to_a_uri_that_leaves_its_folder() -> None:
    app, _ = app_with_files()

    with connect(app, version=ERAS[0]) as server, pytest.raises(ToolError) as refused:
        server.subscribe("files://docs/../x")

    assert "Resource not found" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (("nme",), ValueError, "no parameter is named 'nme'; did you mean 'name'?"),
        (("shelf",), ValueError, "no parameter is named 'shelf'; known parameters: 'name'"),
        ("name", TypeError, "allow_paths='name' should be a list of parameter names"),
    ],
)
def test_allowing_an_unknown_parameter_is_refused_at_registration(
    given: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind) as refused:
        app_with_files(allow_paths=given)

    assert message in str(refused.value)


@pytest.mark.parametrize("era", ERAS)
def test_a_variable_with_a_star_is_any_path_but_one_out_of_its_folder(era: str) -> None:
    app = App("files")
    app.resource("files://{path*}")(echo_path)

    uri = "files://a/b/c%20d.txt"
    inside = read(app, uri, era)
    outside = read(app, "files://a/../../b", era)

    assert inside.content == (Embedded(uri, text="a/b/c d.txt", mime="text/plain"),)
    assert outside.error is not None


def echo_path(path: str) -> str:
    return path
