"""CGI: a process for each request, with the environment and stdin as input."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.forked import run as run_forked

ROOT = Path(__file__).parents[2]
ALIGNED = ROOT / "examples" / "aligned.py"

TOOLS = """
import os, subprocess, sys
from answerback import App, Image, NotFound

print("printed as the module is loaded")
app = App("tools", version="1.2.3")

@app.tool
def noisy() -> str:
    print("printed")
    os.write(1, b"written to fd 1")
    subprocess.run(["echo", "printed by a subprocess"])
    return "quiet"

@app.tool
def read_stdin() -> str:
    return subprocess.run(["cat"], stdout=subprocess.PIPE).stdout.decode() + sys.stdin.read()

@app.tool
def picture() -> Image:
    return Image(bytes(range(256)), "image/png")

@app.tool
def missing() -> int:
    raise NotFound("no such city")

@app.tool
def secret() -> int:
    raise RuntimeError("password=hunter2")

@app.tool
def echo(text: str) -> str:
    return text

@app.tool
async def later(x: int) -> int:
    return x + 1

@app.tool
async def cancelled() -> int:
    import asyncio
    raise asyncio.CancelledError

@app.tool
def interrupted() -> int:
    import os, signal
    os.kill(os.getpid(), signal.SIGINT)
    return 0

@app.tool
async def interrupted_async() -> int:
    interrupted()

@app.tool
def raising(name: str) -> int:
    import asyncio, builtins
    raise getattr(builtins, name, asyncio.CancelledError)("hunter2")

@app.tool
async def raising_async(name: str) -> int:
    return raising(name)

@app.tool
def modules() -> bool:
    import sys
    return "asyncio" in sys.modules

@app.tool
def proxy() -> str | None:
    return os.environ.get("HTTP_PROXY")

if __name__ == "__main__":
    app.run()
"""


class Response(NamedTuple):
    status: str
    headers: dict[str, str]
    body: bytes
    stderr: str
    exit: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    file: Path, path: str | None, body: bytes = b"", method: str = "POST", **environ: str
) -> Response:
    """Run one CGI request as a web server does."""
    variables = {"REQUEST_METHOD": method, "GATEWAY_INTERFACE": "CGI/1.1"}
    variables |= {} if path is None else {"PATH_INFO": path}
    variables |= {"CONTENT_LENGTH": str(len(body))} if body else {}
    result = run_forked([str(file), "cgi"], input=body, env=os.environ | variables | environ)
    return parse(result.stdout, result.stderr.decode(), result.returncode)


def parse(stdout: bytes, stderr: str = "", exit_status: int = 0) -> Response:
    head, _, body = stdout.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n"))
    return Response(headers.pop("Status"), headers, body, stderr, exit_status)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    return file


def test_seed_001_scenario_4_a_cgi_error_is_json() -> None:
    response = request(ALIGNED, "/NonExistent")

    assert response.status == "404 Not Found"
    assert response.headers["Content-Type"] == "application/json"
    assert response.json == {"error": "Function not found: NonExistent"}
    assert response.exit == 0


def test_seed_001_scenario_6_a_cgi_success_is_unchanged() -> None:
    response = request(ALIGNED, "/Add", b'{"x": 10, "y": 20}')

    assert response.status == "200 OK"
    assert response.json == {"result": 30}


def test_seed_001_several_results_and_none_over_cgi() -> None:
    several = request(ALIGNED, "/functions/DivMod", b'{"x": 7, "y": 3}')
    none = request(ALIGNED, "/Forget")

    assert several.json == {"result0": 2, "result1": 1}
    assert none.json == {}


def test_a_response_is_compact_json_with_its_length() -> None:
    response = request(ALIGNED, "/functions/Add", b'{"x":1,"y":2}')

    assert response.body == b'{"result":3}'
    assert response.headers == {"Content-Type": "application/json", "Content-Length": "12"}


def test_text_that_is_printed_goes_to_stderr_and_not_to_the_client(tools: Path) -> None:
    response = request(tools, "/noisy")

    assert response.json == {"result": "quiet"}
    for words in ("as the module is loaded", "printed\n", "to fd 1", "by a subprocess"):
        assert words in response.stderr


def test_a_tool_that_reads_stdin_gets_nothing(tools: Path) -> None:
    response = request(tools, "/read_stdin", b"{}, and more", CONTENT_LENGTH="2")

    assert response.json == {"result": ""}


def test_a_single_image_is_sent_as_its_bytes(tools: Path) -> None:
    response = request(tools, "/picture")

    assert response.headers["Content-Type"] == "image/png"
    assert response.body == bytes(range(256))


def test_the_body_is_read_by_its_length_and_not_to_eof() -> None:
    """A web server need not close the pipe, so EOF may never come."""
    environ = os.environ | {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/Add",
        "CONTENT_LENGTH": "15",
    }
    command = [sys.executable, str(ALIGNED), "cgi"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"x":10,"y":20}, and more that is not part of the body')
        process.stdin.flush()

        stdout = process.stdout.read()
        status = process.wait(timeout=60)

    assert parse(stdout).json == {"result": 30}
    assert status == 0


def test_a_body_that_arrives_in_parts_is_read_completely() -> None:
    environ = os.environ | {"REQUEST_METHOD": "POST", "PATH_INFO": "/Add", "CONTENT_LENGTH": "15"}
    command = [sys.executable, str(ALIGNED), "cgi"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for part in (b'{"x":10', b',"y":20}'):
            process.stdin.write(part)
            process.stdin.flush()

        stdout = process.stdout.read()

    assert parse(stdout).json == {"result": 30}


def test_an_empty_body_means_an_empty_object() -> None:
    response = request(ALIGNED, "/Forget", CONTENT_LENGTH="")

    assert response.json == {}


@pytest.mark.parametrize("length", ["-1", "x", "1.5", "٣", "+3"])
def test_an_invalid_content_length_is_refused_with_400(length: str) -> None:
    response = request(ALIGNED, "/Add", CONTENT_LENGTH=length)

    assert response.status == "400 Bad Request"
    assert response.exit == 0


def test_a_body_that_ends_early_is_refused_with_400() -> None:
    response = request(ALIGNED, "/Add", b'{"x":1', CONTENT_LENGTH="100")

    assert response.status == "400 Bad Request"
    assert response.json == {"error": "Body ended after 6 of 100 bytes"}


def test_a_chunked_body_without_a_length_is_refused_with_400() -> None:
    response = request(ALIGNED, "/Add", HTTP_TRANSFER_ENCODING="chunked")

    assert response.status == "400 Bad Request"
    assert "Content-Length is missing" in response.json["error"]


@pytest.mark.parametrize("length", [str(4 * 1024 * 1024 + 1), "9" * 5000])
def test_a_body_that_is_too_large_is_refused_with_413(length: str) -> None:
    response = request(ALIGNED, "/Add", CONTENT_LENGTH=length)

    assert response.status.startswith("413 ")
    assert response.json == {"error": "Body larger than 4194304 bytes"}


def test_answerback_max_body_sets_the_limit_of_a_body() -> None:
    body = b'{"x":10,"y":20}'

    refused = request(ALIGNED, "/Add", body, ANSWERBACK_MAX_BODY="14")
    taken = request(ALIGNED, "/Add", body, ANSWERBACK_MAX_BODY="15")

    assert refused.status.startswith("413 ")
    assert taken.json == {"result": 30}


@pytest.mark.parametrize(
    ("status", "path", "environ"),
    [
        ("413", "/Add", {"ANSWERBACK_MAX_BODY": "1000"}),
        ("415", "/Add", {"CONTENT_TYPE": "text/plain"}),
        ("405", "/Add", {"REQUEST_METHOD": "PUT"}),
        ("405", "/healthz", {}),
        ("404", "/no/such/route", {}),
        ("400", "/Add", {"CONTENT_LENGTH": "", "HTTP_TRANSFER_ENCODING": "chunked"}),
        ("500", "/Add", {"ANSWERBACK_MAX_BODY": "a lot"}),
    ],
)
def test_the_body_of_a_refused_request_is_read(
    status: str, path: str, environ: dict[str, str]
) -> None:
    """A web server that still writes the body drops the response of a program that ended."""
    body = b" " * 2_500_000
    variables = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_LENGTH": str(len(body))}
    process = subprocess.Popen(
        [sys.executable, ALIGNED, "cgi"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | variables | environ,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(body)
        process.stdin.close()

        response = parse(process.stdout.read())

    assert response.status.startswith(status)
    assert len(response.body) == int(response.headers["Content-Length"])


# Runs a program that waits for the next bytes of a refused body for 0.2 seconds instead of 5.
IMPATIENT = """
import runpy, sys
from answerback.server import cgi

assert cgi._DISCARD_TIMEOUT == 5
cgi._DISCARD_TIMEOUT = 0.2
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_refusal_is_sent_though_the_body_does_not_arrive() -> None:
    environ = os.environ | {
        "REQUEST_METHOD": "PUT",
        "PATH_INFO": "/Add",
        "CONTENT_LENGTH": "15",
    }
    command = [sys.executable, "-c", IMPATIENT, str(ALIGNED), "cgi"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environ) as process:
        assert process.stdout is not None
        response = parse(process.stdout.read())

    assert response.status == "405 Method Not Allowed"


@pytest.mark.parametrize(
    ("variable", "path", "status"),
    [
        ("CONTENT_TYPE", "/Add", "415"),
        ("REQUEST_METHOD", "/Add", "405"),
        ("CONTENT_LENGTH", "/Add", "400"),
        ("SCRIPT_NAME", "/no/such/route", "404"),
        ("SCRIPT_NAME", "/openapi.json", "405"),
    ],
)
def test_a_variable_that_is_not_utf_8_is_answered(variable: str, path: str, status: str) -> None:
    response = request(ALIGNED, path, b"{}", **{variable: os.fsdecode(b"caf\xe9")})

    assert response.status.startswith(status)
    assert response.stderr == ""


def test_a_script_name_that_is_not_utf_8_is_in_the_openapi_document() -> None:
    response = request(ALIGNED, "/openapi.json", method="GET", SCRIPT_NAME=os.fsdecode(b"/\xe9"))

    assert response.json["servers"] == [{"url": "/\ufffd"}]


def test_a_body_limit_of_thousands_of_digits_is_no_limit() -> None:
    response = request(ALIGNED, "/Add", b'{"x":10,"y":20}', ANSWERBACK_MAX_BODY="9" * 5000)

    assert response.json == {"result": 30}


def test_a_body_that_is_not_json_is_refused_as_in_seed_001() -> None:
    response = request(ALIGNED, "/Add", b"{not json")

    assert response.status == "400 Bad Request"
    assert response.json == {"error": "Invalid JSON body"}


def test_a_form_is_refused_with_415_and_a_hint() -> None:
    response = request(ALIGNED, "/Add", b"x=1", CONTENT_TYPE="application/x-www-form-urlencoded")

    assert response.status == "415 Unsupported Media Type"
    assert "Content-Type: application/json" in response.json["error"]


def test_a_compressed_body_is_refused_with_415() -> None:
    response = request(ALIGNED, "/Add", b"\x1f\x8b", HTTP_CONTENT_ENCODING="gzip")

    assert response.status == "415 Unsupported Media Type"
    assert "Unsupported content encoding: gzip" in response.json["error"]


def test_a_slash_at_the_end_of_a_path_is_ignored() -> None:
    response = request(ALIGNED, "/Add/", b'{"x":1,"y":2}')

    assert response.json == {"result": 3}


def test_json_with_a_charset_is_accepted() -> None:
    kind = "application/json; charset=utf-8"

    response = request(ALIGNED, "/Add", b'{"x":1,"y":2}', CONTENT_TYPE=kind)

    assert response.json == {"result": 3}


def test_a_method_other_than_post_is_refused_with_405() -> None:
    response = request(ALIGNED, "/Add", method="GET")

    assert response.status == "405 Method Not Allowed"
    assert response.headers["Allow"] == "POST"
    assert response.exit == 0


def test_a_page_refuses_post_with_405() -> None:
    response = request(ALIGNED, "/functions", method="POST")

    assert response.status == "405 Method Not Allowed"
    assert response.headers["Allow"] == "GET, HEAD"


def test_head_has_the_headers_of_get_and_no_body() -> None:
    whole = request(ALIGNED, "/healthz", method="GET")
    head = request(ALIGNED, "/healthz", method="HEAD")

    assert head.headers == whole.headers
    assert head.body == b""


def test_the_function_list_is_served() -> None:
    response = request(ALIGNED, "/functions", method="GET")

    assert [entry["name"] for entry in response.json] == ["Add", "DivMod", "Forget"]


def test_the_openapi_document_is_served() -> None:
    response = request(ALIGNED, "/openapi.json", method="GET")

    assert response.json["openapi"].startswith("3.1")


def test_health_names_the_app(tools: Path) -> None:
    response = request(tools, "/healthz", method="GET")

    assert response.json == {"status": "ok", "name": "tools", "version": "1.2.3"}


@pytest.mark.parametrize("path", [None, "", "/", "/functions//", "/mcp/x"])
def test_an_unknown_route_is_answered_with_404(path: str | None) -> None:
    response = request(ALIGNED, path)

    assert response.status == "404 Not Found"
    assert response.headers["X-Error-Code"] == "ROUTE_NOT_FOUND"


def test_a_path_that_is_not_utf_8_is_answered() -> None:
    response = request(ALIGNED, os.fsdecode(b"/caf\xe9"))

    assert response.json == {"error": "Function not found: caf\ufffd"}


def test_a_path_is_not_decoded_twice() -> None:
    response = request(ALIGNED, "/A%64d", b'{"x":1,"y":2}')

    assert response.json == {"error": "Function not found: A%64d"}


def test_a_program_that_is_run_without_a_web_server_prints_a_hint() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "REQUEST_METHOD"}
    command = [sys.executable, str(ALIGNED), "cgi"]

    result = subprocess.run(
        command, capture_output=True, env=environ | {"PATH_INFO": "/healthz"}, check=True
    )

    assert parse(result.stdout).json["status"] == "ok"
    assert b"REQUEST_METHOD=POST" in result.stderr


def test_an_error_of_a_tool_has_its_status_and_exit_status_0(tools: Path) -> None:
    response = request(tools, "/missing")

    assert response.status == "404 Not Found"
    assert response.json == {"error": "no such city"}
    assert response.headers["X-Error-Code"] == "NOT_FOUND"
    assert response.exit == 0


def test_an_exception_is_masked_and_goes_to_the_servers_log(tools: Path) -> None:
    response = request(tools, "/secret")

    assert response.status == "500 Internal Server Error"
    assert b"hunter2" not in response.body
    assert "hunter2" in response.stderr
    assert response.exit == 0


@pytest.mark.skipif(
    sys.version_info < (3, 13) and not __file__.isascii(),
    reason="in the C locale this Python reads no .pth file with such a path",
)
def test_text_outside_ascii_is_read_and_written(tools: Path) -> None:
    response = request(tools, "/echo", '{"text":"Tromsø 🌨"}'.encode(), LC_ALL="C")

    assert response.json == {"result": "Tromsø 🌨"}


def test_an_async_tool_is_run(tools: Path) -> None:
    response = request(tools, "/later", b'{"x":1}')

    assert response.json == {"result": 2}


def test_a_def_tool_does_not_import_asyncio(tools: Path) -> None:
    response = request(tools, "/modules")

    assert response.json == {"result": False}


def test_a_tool_that_raises_cancelled_error_is_answered_in_json(tools: Path) -> None:
    response = request(tools, "/cancelled")

    assert response.status == "500 Internal Server Error"
    assert response.json["error"].startswith("The tool failed unexpectedly (reference ")
    assert response.headers["Content-Type"] == "application/json"


def test_a_file_that_cannot_be_loaded_is_answered_in_json(tmp_path: Path) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import nonsense_that_is_not_there")
    command = [sys.executable, "-m", "answerback", "cgi", str(file)]
    environ = os.environ | {"REQUEST_METHOD": "POST", "PATH_INFO": "/add"}

    result = subprocess.run(command, capture_output=True, env=environ, check=False)

    assert parse(result.stdout).json == {"error": "Internal server error"}
    assert b"nonsense_that_is_not_there" in result.stderr


def test_the_log_of_a_file_that_cannot_be_loaded_shows_only_the_authors_code(
    tmp_path: Path,
) -> None:
    (tmp_path / "broken.py").write_text("import nonsense_that_is_not_there")

    logged = {}
    for name in ("broken.py", "nope.py"):
        command = [sys.executable, "-m", "answerback", "cgi", str(tmp_path / name)]
        environ = os.environ | {"REQUEST_METHOD": "POST", "PATH_INFO": "/add"}
        logged[name] = subprocess.run(command, capture_output=True, env=environ, check=False).stderr

    assert logged["nope.py"].count(b"\n") == 1
    assert b"there is no file" in logged["nope.py"]
    assert b'broken.py", line 1' in logged["broken.py"]
    assert not any(b"answerback/cli" in each for each in logged.values())


def test_an_invalid_body_limit_is_logged_without_a_traceback(tools: Path) -> None:
    response = request(tools, "/echo", b'{"text": "a"}', ANSWERBACK_MAX_BODY="4 MB")

    assert response.status == "500 Internal Server Error"
    assert "ANSWERBACK_MAX_BODY is '4 MB'; set it to a number of bytes" in response.stderr
    assert "Traceback" not in response.stderr


@pytest.mark.parametrize("tool", ["interrupted", "interrupted_async"])
def test_an_interrupt_logs_no_traceback(tools: Path, tool: str) -> None:
    response = request(tools, f"/{tool}")

    assert response.status == "500 Internal Server Error"
    assert "Traceback" not in response.stderr
    assert response.exit == 130


@pytest.mark.parametrize("name", ["KeyboardInterrupt", "GeneratorExit", "CancelledError"])
@pytest.mark.parametrize("tool", ["raising", "raising_async"])
def test_an_interrupt_or_cancellation_that_a_tool_raises_is_masked(
    tools: Path, tool: str, name: str
) -> None:
    response = request(tools, f"/{tool}", b'{"name": "%b"}' % name.encode())

    assert response.status == "500 Internal Server Error"
    assert response.headers["X-Error-Code"] == "TOOL_EXECUTION_ERROR"
    assert response.json["error"].startswith("The tool failed unexpectedly (reference ")
    assert response.exit == 0


def test_a_clients_proxy_header_does_not_reach_a_tool(tools: Path) -> None:
    """Contract: `Proxy: http://evil` must not redirect the requests of a tool (httpoxy)."""
    response = request(tools, "/proxy", HTTP_PROXY="http://evil.example")

    assert response.json == {"result": None}


def test_the_accept_header_selects_the_dialect(tools: Path) -> None:
    mcp = request(tools, "/missing", HTTP_ACCEPT="application/vnd.answerback.mcp+json")
    problem = request(tools, "/missing", HTTP_ACCEPT="application/json, application/problem+json")

    assert mcp.json["isError"] is True
    assert problem.headers["Content-Type"] == "application/problem+json"
    assert mcp.status == problem.status == "404 Not Found"


def test_an_unresolvable_annotation_is_a_masked_error(tmp_path: Path) -> None:
    file = tmp_path / "undefined.py"
    file.write_text(
        "from answerback import App\napp = App('x')\n"
        "@app.tool\ndef f() -> 'Nowhere': ...\napp.run()"
    )

    response = request(file, "/f")

    assert response.headers["X-Error-Code"] == "TOOL_EXECUTION_ERROR"
    assert response.exit == 0


def test_a_body_without_content_length_is_refused_with_what_to_set() -> None:
    """In a shell: echo '{}' | REQUEST_METHOD=POST PATH_INFO=/Add python aligned.py cgi."""
    result = subprocess.run(
        [sys.executable, ALIGNED, "cgi"],
        input=b'{"x": 1, "y": 2}',
        capture_output=True,
        env=os.environ | {"REQUEST_METHOD": "POST", "PATH_INFO": "/Add"},
        timeout=60,
        check=False,
    )

    response = parse(result.stdout)

    assert response.status == "400 Bad Request"
    assert response.json == {"error": "The request has a body, but CONTENT_LENGTH is not set"}
    assert response.headers["X-Error-Hint"].startswith("set CONTENT_LENGTH to the number of bytes")
