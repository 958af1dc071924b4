"""Checks of the rows about `aligned`."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from tests.docs.conventions.checks import (
    EXAMPLES,
    PACKAGE,
    ROOT,
    app_of,
    ask_mcp,
    over_cgi,
    request,
    rows_of,
    run_python,
    sent,
    text_of,
)

from answerback import App, NotFound, ToolError, failure, success

row = rows_of("aligned")
ADD = b'{"x": 7, "y": 3}'


class Divided(NamedTuple):
    quotient: int
    remainder: int


def Add(x: int, y: int) -> int:  # noqa: N802 -- the document's name
    return x + y


def crash() -> int:
    raise RuntimeError("at localhost:5432")


def refuse() -> int:
    raise ToolError("The numbers are too large")


def make_app(*more: Any) -> App:
    return app_of(Add, crash, refuse, *more, contract="aligned")


def makefile() -> str:
    return (ROOT / "Makefile").read_text()


@row("buildSuccessResponse (response.go)")
def _() -> None:
    app = App("calc", contract="aligned")

    assert app.write(success(data=10)) == {"result": 10}
    assert app.write(success(data=(10, 20))) == {"result0": 10, "result1": 20}
    assert app.write(success(data=())) == {}


@row("buildErrorResponse (response.go)")
def _() -> None:
    assert failure("no").to("rest") == {"error": "no"}
    assert (PACKAGE / "dialects" / "rest.py").exists()


@row("adapter_http.go")
def _() -> None:
    response = request(make_app(), "POST", "/functions/Add", {"x": "seven"})

    assert response.status_code == 400
    assert response.headers["content-type"] == "application/json"
    assert list(response.json()) == ["error"]
    assert (PACKAGE / "server" / "http").is_dir()


@row("adapter_cgi.go")
def _() -> None:
    head, body = over_cgi("aligned.py", "/NonExistent")

    assert "Status: 404 Not Found" in head
    assert "Content-Type: application/json" in head
    assert json.loads(body) == {"error": "Function not found: NonExistent"}
    assert (PACKAGE / "server" / "cgi.py").exists()


@row("adapter_mcp.go")
def _() -> None:
    app = make_app()

    for arguments in ({"x": 7, "y": 3}, {"x": "seven"}):
        result = ask_mcp(app, "tools/call", name="functions.Add", arguments=arguments)
        body = request(app, "POST", "/functions/Add", arguments).json()
        assert json.loads(text_of(result)) == body
    assert (PACKAGE / "protocol").is_dir()


@row("generateOpenAPISpec (openapi.go)")
def _() -> None:
    app = make_app()

    served = request(app, "GET", "/openapi.json").json()

    assert served["paths"] == app.openapi()["paths"]
    assert {"400", "500"} <= served["paths"]["/functions/Add"]["post"]["responses"].keys()


@row("GenerateOutputJSONSchema")
def _() -> None:
    schema = make_app().tools["Add"].output_schema

    assert schema is not None
    assert schema["properties"]["result"]["type"] == "integer"


@row("the example app's serve, cgi and mcp")
def _() -> None:
    shown = run_python(str(EXAMPLES / "aligned.py"), "--help").decode()

    assert {"serve", "cgi", "mcp"} <= set(re.findall(r"\w+", shown))


@row("tests/kuniumi/kuniumi_test.go")
def _() -> None:
    tests = (ROOT / "tests" / "seeds" / "test_seed_001.py").read_text()

    assert {f"scenario_{number}" for number in (3, 4, 5, 6)} <= set(
        re.findall(r"scenario_\d", tests)
    )


@row("scripts/process/build.sh")
def _() -> None:
    assert re.search(r"^check:", makefile(), re.MULTILINE)


@row("scripts/process/integration_test.sh")
def _() -> None:
    assert re.search(r"^test:", makefile(), re.MULTILINE)


@row("the tool is functions.Add over MCP")
def _() -> None:
    app = make_app()
    arguments = {"x": 7, "y": 3}

    result = ask_mcp(app, "tools/call", name="functions.Add", arguments=arguments)

    assert text_of(result) == '{"result":10}'
    assert request(app, "POST", "/functions/Add", arguments).json() == {"result": 10}
    for path in ("/Add", "/functions/Add"):
        assert json.loads(over_cgi("aligned.py", path, ADD)[1]) == {"result": 10}


@row('{"result": 10} with a space over HTTP')
def _() -> None:
    response = request(make_app(), "POST", "/functions/Add", {"x": 7, "y": 3})

    assert response.content == b'{"result":10}'


@row("scenario 6 calls CGI")
def _() -> None:
    _, body = over_cgi("aligned.py", "/Add", b'{"x": 10, "y": 20}')

    assert json.loads(body) == {"result": 30}


@row("the number of returned values")
def _() -> None:
    def several() -> tuple[int, int]:
        return 20, 10

    def untyped():  # type: ignore[no-untyped-def]  # the row is about functions without annotations
        return 20, 10

    def named() -> Divided:
        return Divided(2, 1)

    def nothing() -> None:
        return None

    def none_at_all() -> tuple[()]:
        return ()

    app = make_app(several, untyped, named, nothing, none_at_all)

    assert sent(app, "several") == sent(app, "untyped") == {"result0": 20, "result1": 10}
    assert sent(app, "named") == {"quotient": 2, "remainder": 1}
    assert sent(app, "nothing") == sent(app, "none_at_all") == {}


@row("the OpenAPI document lists only 400 and 500")
def _() -> None:
    app = make_app()
    app.add_tool(Add, name="find", raises=[NotFound])

    responses = app.openapi()["paths"]["/functions/find"]["post"]["responses"]

    assert {"200", "400", "404", "500", "default"} <= responses.keys()


@row("the schema of an error has required")
def _() -> None:
    document = make_app().openapi()

    assert json.dumps(document).count('"required": ["error"]') >= 1
    assert '"error": {"type": "string"' in json.dumps(document)


@row("an unknown function is 404 over CGI")
def _() -> None:
    response = request(make_app(), "POST", "/functions/NonExistent", {})

    assert response.status_code == 404
    assert response.json() == {"error": "Function not found: NonExistent"}
    assert "Status: 404" in over_cgi("aligned.py", "/NonExistent")[0]


@row("an error of the function is sent unchanged")
def _() -> None:
    app = make_app()

    assert sent(app, "refuse") == {"error": "The numbers are too large"}
    assert "localhost" not in sent(app, "crash")["error"]
