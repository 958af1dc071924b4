"""Correct replies that look suspicious: no rule may find anything in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from tests.rules.reply_builders import (
    NOW,
    PNG,
    USER,
    blocks_result,
    envelope,
    image_block,
    text_block,
    text_result,
)

from answerback import validate


class Case(NamedTuple):
    name: str
    reply: Any
    options: dict[str, Any]


def failed_envelope(**changes: Any) -> dict[str, Any]:
    error = {"code": "NOT_FOUND", "message": "no such instance"}
    content = [text_block("Error: no such instance")]
    return envelope(**{"success": False, "content": content, "error": error} | changes)


_ARTICLE = """Error handling in Go

Error: a value of type error. Functions return it last.
Traceback-like stacks are rare; a panic prints one:

    goroutine 1 [running]:
    main.main()

Failed to understand? Read on."""
_LOG = "\n".join(
    f"2026-01-31T12:00:{second:02} ERROR Failed to open file: permission denied"
    for second in range(12)
)
_PYTEST = """2 failed, 14 passed in 0.31s

Traceback (most recent call last):
  File "tests/test_add.py", line 3, in test_add
AssertionError"""
_REFERENCE = """Connect with postgres://user:password@localhost:5432/db, or set
DATABASE_URL=postgres://USER:${PASSWORD}@HOST/db. Send `Authorization: Bearer YOUR_TOKEN_HERE_X`
or `Bearer <token>`; keys look like AKIAIOSFODNN7EXAMPLE and
ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.
A key file begins with -----BEGIN RSA PRIVATE KEY-----
and ends with -----END RSA PRIVATE KEY-----."""
_SAMPLE_JWT = (
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIn0."
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
)


def good(name: str, reply: Any, **options: Any) -> Case:
    return Case(name, reply, options)


GOOD = [
    # Documents that talk about errors.
    good("an article about errors", text_result(_ARTICLE)),
    good("a log with errors in it", text_result(_LOG)),
    good("a run of tests with a traceback", text_result(_PYTEST)),
    good("no errors", text_result("No errors found in 14 files.")),
    good("a count of errors", text_result("Errors: 0, warnings: 3")),
    good("a count of one kind", text_result("Error: 0 (none since Monday)")),
    good(
        "a sentence about a failure",
        text_result("The build failed twice last week; it is green now."),
    ),
    good("a heading", text_result("Error rate: 0.3 % over the last hour")),
    good(
        "what a status means", text_result("404 Not Found means that the server has no such page.")
    ),
    good("failed logins", text_result("Failed logins: 3 (all from 203.0.113.9)")),
    good("a song", text_result("Error 404 is a song of 2019.")),
    good(
        "a file that is an error message",
        text_result("Error: disk full", structuredContent={"content": "Error: disk full"}),
    ),
    good("a commit message", text_result("fix: Error: prefix is no longer doubled in replies")),
    good("a null result", text_result("null")),
    good("an empty file", text_result("")),
    # Objects with a failure in them are not failures.
    good(
        "a check that came out negative",
        text_result('{"host":"x.org","success":false,"latency":null}'),
    ),
    good(
        "jobs, one of which failed",
        text_result('{"jobs":[{"id":1,"status":"error","error":"exit 1"}]}'),
    ),
    good(
        "a finished job that failed", text_result('{"id":17,"status":"failed","message":"exit 1"}')
    ),
    good("errors, of which there are none", text_result('{"errors":[],"message":"all fine"}')),
    good("an error that is null", text_result('{"error":null,"result":{"id":1}}')),
    good("a status in words", text_result('{"status":"ok","error":"","message":"sent"}')),
    good("a message and its status", text_result('{"message":"hello","status":"sent","code":7}')),
    good("a probe of a page", text_result('{"status":404,"url":"https://x.org/a","ms":31}')),
    good("a title and a status", text_result('{"title":"Parasite","status":"released"}')),
    good("a message about errors", text_result('{"message":"No errors found"}')),
    good("a set in Python", text_result("{'a', 'b'}")),
    good("code that begins with a list", text_result("['a', 'b'].forEach(print)")),
    good("a quotation", text_result("{'tis the season}")),
    good("an answer that is no", text_result('{"valid":false,"reason":"the checksum is wrong"}')),
    # Records whose members are called like those of an error.
    good("a dialling code", text_result('{"code":"415","message":"San Francisco"}')),
    good("a room", text_result('{"code":"404","title":"Room 404"}')),
    good("a coupon", text_result('{"code":"500","title":"500 points","status":"active"}')),
    good("an index of shares", text_result('{"code":"500","title":"S&P 500"}')),
    good("a ticket", text_result('{"message":"Error: cannot save the file","status":"open"}')),
    good(
        "the title of a ticket", text_result('{"title":"Error: cannot save the file","type":"bug"}')
    ),
    good(
        "a message in a chat",
        text_result('{"message":"Error: the mug is empty","timestamp":"12:01"}'),
    ),
    good("a mail", text_result('{"title":"Failed to deliver: your parcel","type":"email"}')),
    good(
        "an exception that was looked up",
        text_result(
            '{"type":"TypeError","message":"Cannot read properties of undefined","path":"a.js"}'
        ),
    ),
    good(
        "what a linter found", text_result('{"errors":[{"message":"missing semicolon","line":3}]}')
    ),
    good(
        "what a validator found",
        text_result('{"valid":false,"errors":[{"message":"x is required"}]}'),
    ),
    good("a conclusion of a build", text_result('{"status":"completed","conclusion":"failure"}')),
    good("a build", text_result('{"id":7,"status":"failed","reason":"exit 1"}')),
    good("an error rate", text_result('{"error_rate":0.02,"errors":3,"requests":150}')),
    good("errors that are a number", text_result('{"errors":3}')),
    good(
        "an event of a cluster",
        text_result('{"type":"Warning","reason":"BackOff","message":"again"}'),
    ),
    good(
        "a command that failed",
        text_result('{"exitCode":1,"stderr":"fatal: not a git repository"}'),
    ),
    good("rows of points", text_result('[{"code":"N1","path":"M0 0","message":"north"}]')),
    good("a way through a tree", text_result('[{"code":"N1","path":["a"],"message":"north"}]')),
    good("a build in a result", text_result('{"result":{"name":"x","status":"failed"}}')),
    good("a file in a fence", text_result('```json\n{"success":false,"host":"x.org"}\n```')),
    # Good error messages.
    good(
        "a plain error",
        text_result("Location 'xyz' not found. Give a city or a zip code.", isError=True),
    ),
    good("the seed's safe error", text_result("Operation failed. Please try again.", isError=True)),
    good("an error with a code", text_result("NOT_FOUND: no such city", isError=True)),
    good("an error as aligned has it", text_result('{"error": "division by zero"}', isError=True)),
    good(
        "an error with a path of the caller's",
        text_result("cannot read notes/today.md: no such file", isError=True),
    ),
    good(
        "an error about a page",
        text_result("http://localhost:3000 does not answer; is it running?", isError=True),
    ),
    good(
        "an error with a system path",
        text_result("Access denied: /etc/shadow is outside the allowed folders", isError=True),
    ),
    good(
        "an error with a picture",
        blocks_result(text_block("the page did not load"), image_block(PNG), isError=True),
    ),
    good("an error and a schema", text_result("no such user: 9", isError=True), schema=USER),
    # Texts that only look like secrets.
    good("documentation about secrets", text_result(_REFERENCE)),
    good("the token of jwt.io", text_result(f"For example {_SAMPLE_JWT}")),
    good(
        "a cursor that looks like a token",
        text_result('{"next":"eyJpZCI6MTIzNDU2Nzg5MCwiZGlyIjoibmV4dCJ9"}'),
    ),
    good(
        "an address with a user and a port",
        text_result("ssh://git@example.com:22/repo.git and http://x.org:8080/a@b"),
    ),
    good(
        "a connection string as documentation has it",
        text_result(
            "Use Server=db;Uid=shop;Password=<your password>; or Server=db;Uid=shop;Pwd=***;"
        ),
    ),
    good("how HTTP Basic looks", text_result("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")),
    good(
        "the database of a developer",
        text_result("DATABASE_URL=postgres://postgres:postgres@localhost:5432/app_test"),
    ),
    good(
        "a file of containers",
        text_result("amqp://guest:guest@rabbit:5672/ and redis://:p@redis/0"),
    ),
    good(
        "masked secrets",
        text_result("postgres://shop:***@db/shop, Bearer ****************************"),
    ),
    good(
        "hashes",
        text_result("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ),
    good(
        "words with sk- in them",
        text_result("disk-usage-of-the-first-machine and task-12345678901234567890"),
    ),
    # Text and data that differ only in form.
    good(
        "a list, wrapped in the data", text_result("[1, 2]", structuredContent={"result": [1, 2]})
    ),
    good("indented JSON", text_result('{\n  "id": 7\n}', structuredContent={"id": 7})),
    good("1.0 and 1", text_result('{"id":1.0}', structuredContent={"id": 1})),
    good("other order", text_result('{"a":1,"b":2}', structuredContent={"b": 2, "a": 1})),
    good(
        "prose, JSON and data, which has the prose too",
        blocks_result(
            text_block("It is seven."),
            text_block('{"result":7}'),
            structuredContent={"result": 7, "message": "It is seven."},
            _meta={"answerback/added": "message"},
        ),
    ),
    good(
        "a picture that the data names",
        blocks_result(
            image_block(PNG, "image/png"),
            text_block('{"city":"Oslo","picture":"image/png, 70 bytes"}'),
            structuredContent={"city": "Oslo", "picture": "image/png, 70 bytes"},
        ),
    ),
    good(
        "a text for the user only",
        blocks_result(
            {"type": "text", "text": "Enjoy!", "annotations": {"audience": ["user"]}},
            text_block('{"result":7}'),
            structuredContent={"result": 7},
        ),
    ),
    good(
        "a cut that the data says",
        text_result(
            '{"items":[1],"returned":1,"total":7253}',
            structuredContent={"items": [1], "returned": 1, "total": 7253},
            _meta={
                "answerback/cut": [
                    {"path": "/items", "returned": 1, "total": 7253, "unit": "items"}
                ]
            },
        ),
    ),
    good(
        "a JSON file",
        text_result(
            '{"name":"pkg","version":"1"}',
            structuredContent={"content": '{"name":"pkg","version":"1"}'},
        ),
    ),
    good(
        "null inside the data",
        text_result('{"mail":null}', structuredContent={"mail": None}),
        schema={"type": "object"},
    ),
    good(
        "two records that are not one list",
        blocks_result(text_block('{"id":1}'), text_block('{"id":2}')),
    ),
    good("NaN in prose", text_result("[1] NaN is not a number")),
    good("a brace that is no JSON", text_result("{name} is the placeholder")),
    good("quoted JSON", text_result('"{" opens an object, "}" closes it, says "the standard"')),
    good("a short text twice", blocks_result(text_block("ok"), text_block("ok"))),
    # Content.
    good(
        "image/jpg, as everybody says",
        blocks_result(
            {"type": "image", "data": "/9j/4AAQSkZJRgABAQAAAQABAAD/", "mimeType": "image/jpg"}
        ),
    ),
    good(
        "an unknown sort of picture", blocks_result(image_block("AAAAHGZ0eXBhdmlm", "image/avif"))
    ),
    good(
        "a scheme of one's own",
        blocks_result({"type": "resource_link", "uri": "demo://users/7", "name": "Ada"}),
    ),
    good(
        "a urn",
        blocks_result({"type": "resource_link", "uri": "urn:isbn:0451450523", "name": "a book"}),
    ),
    good(
        "priority 0",
        blocks_result({**text_block("skip this"), "annotations": {"priority": 0, "audience": []}}),
    ),
    good(
        "a date alone",
        blocks_result({**text_block("old"), "annotations": {"lastModified": "2025-05-03"}}),
    ),
    good(
        "base64 of something else",
        text_result(
            "SGVsbG8sIHdvcmxkISBUaGlzIGlzIGJhc2U2NCBvZiBzb21lIHRleHQsIGFuZCBpdCBpcyBsb25nIGVub3VnaC4="
        ),
    ),
    good("a long document", text_result("A line of prose that somebody wanted to read.\n" * 2_000)),
    good(
        "a question back",
        {"resultType": "input_required", "inputRequests": {}},
        version="2026-07-28",
    ),
    good(
        "a list as data, in 2026",
        text_result("[1]", structuredContent=[1], resultType="complete"),
        version="2026-07-28",
    ),
    # The envelope.
    good("an item of a type of one's own", envelope(content=[{"type": "chart", "series": [1, 2]}])),
    good("milliseconds and an offset", envelope(timestamp="2026-01-31T12:00:00.123+01:00")),
    good("a leap second", envelope(timestamp="2016-12-31T23:59:60Z")),
    good(
        "an error said twice",
        failed_envelope(content=[text_block("Error: no such instance (tried 3 times)")]),
    ),
    good(
        "an error with more in it",
        failed_envelope(error={"code": "X", "message": "no such instance", "hint": "list them"}),
    ),
    good(
        "a message that was looked up",
        envelope(content=[text_block("Error: disk full")], data={"message": "Error: disk full"}),
    ),
    good("members of one's own", envelope(requestId="7", data={"error": None})),
    good(
        "JSON of a flat record", envelope(content=[text_block('{"id":"i-1"}')], data={"id": "i-1"})
    ),
    # REST.
    good("data with an error among it", {"error": "exit 1", "job": 7}, dialect="rest"),
    good("a list", [1, 2], dialect="rest"),
    good("a problem without detail", {"title": "Not Found", "status": 404}, dialect="problem"),
    good(
        "a problem without title, status and detail",
        {"type": "https://x.org/probs/out-of-credit", "instance": "/account/7", "balance": 30},
        dialect="problem",
    ),
    good(
        "a problem",
        {"type": "about:blank", "title": "Not Found", "status": 404, "detail": f"nothing at {NOW}"},
        dialect="problem",
    ),
]


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(GOOD) >= 40
    assert len({case.name for case in GOOD}) == len(GOOD)


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_a_correct_reply_that_looks_suspicious_has_no_findings(case: Case) -> None:
    assert validate(case.reply, **case.options) == ()
