"""Bad replies that real servers have sent, and the rules that must find each.

The shapes come from the issues named here; names and values are made up.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
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

JPEG = base64.b64encode(b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(40)).decode()
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


class Case(NamedTuple):
    name: str
    reply: Any
    rules: set[str]
    """The ids of all rules that find something."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Further arguments of `validate`."""


def failed_envelope(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "success": False,
        "timestamp": NOW,
        "content": [text_block("Error: no such instance")],
        "error": {"code": "NOT_FOUND", "message": "no such instance"},
    }
    return whole | changes


# Concatenated, so that secret scanners do not report this file.
GITHUB = "ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"
SLACK = "xoxb" + "-210987654321-0123456789012-AbCdEfGhIjKlMnOpQrStUvWx"
AWS = "AKIA" + "Q3EGU7TZ5N2LMWX4"
OPENAI = "sk-" + "proj-9dK2mQ7xVb4TnR8sLw3ZpY6cHf1JgA5eUo0I"
PASSWORD = "hV7-t" + "9aQ"
DSN = "postgresql://shop:" + "hV7-t9aQ@db.internal:5432/shop"
JWT = (
    "eyJhbGciOiJIUzI1NiJ9." + "eyJ1c2VyIjoiYWxpY2UiLCJyb2xlIjoiYWRtaW4ifQ." + "c2lnbmF0dXJlLWhlcmU"
)
KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA" * 4 + "\n-----END RSA PRIVATE KEY-----"
)
TRACE = (
    "Traceback (most recent call last):\n"
    '  File "/srv/app/server.py", line 41, in call\n'
    "    row = rows[0]\nIndexError: list index out of range"
)
NODE_TRACE = (
    "TypeError: Cannot read properties of undefined (reading 'id')\n"
    "    at getUser (/srv/app/dist/users.js:17:22)\n"
    "    at async handler (/srv/app/dist/index.js:80:5)"
)

BAD = [
    # Text and data, 1: claude-code 79944, kimi-code, agent-framework 7866.
    Case(
        "claude-code 79944: the text is newer than the data",
        text_result('{"id":7,"name":"Ada"}', structuredContent={"id": 7, "name": "Eve"}),
        {"AB301"},
    ),
    Case(
        "claude-code 79944: a member only the text has",
        text_result('{"id":7,"name":"Ada"}', structuredContent={"id": 7}),
        {"AB302"},
    ),
    Case(
        "kimi-code: a member only the data has",
        text_result('{"items":[1,2]}', structuredContent={"items": [1, 2], "nextCursor": "b"}),
        {"AB302"},
    ),
    Case(
        "agent-framework 7866: the same JSON in two blocks",
        blocks_result(
            text_block('{"id":7,"name":"Ada","mail":"ada@example.com"}'),
            text_block('{\n  "id": 7,\n  "name": "Ada",\n  "mail": "ada@example.com"\n}'),
        ),
        {"AB601"},
    ),
    # Output schemas, 2 and 6: fastmcp 5030, repomix 833, arcade-mcp 817, tailscale-mcp 101.
    Case(
        "fastmcp 5030: a wrong return becomes an empty success",
        text_result("{}", structuredContent={}),
        {"AB320"},
        {"schema": USER},
    ),
    Case(
        "fastmcp 5030: a number where the schema says text",
        text_result('{"id":7,"name":9}', structuredContent={"id": 7, "name": 9}),
        {"AB320"},
        {"schema": USER},
    ),
    Case("a schema, and no data", text_result("Ada is user 7"), {"AB321"}, {"schema": USER}),
    Case(
        "repomix 833: an error that the schema does not allow",
        text_result(
            "no such user: 9", isError=True, structuredContent={"errorMessage": "no such user: 9"}
        ),
        {"AB322"},
        {"schema": USER},
    ),
    Case(
        "tailscale-mcp 101: null data on an error",
        text_result("device is offline", isError=True, structuredContent=None),
        {"AB305"},
    ),
    Case(
        "apollo-mcp-server: data for a client of 2025-03-26",
        text_result('{"id":7,"name":"Ada"}', structuredContent={"id": 7, "name": "Ada"}),
        {"AB311"},
        {"version": "2025-03-26"},
    ),
    Case(
        "a list as structured content",
        text_result("[1,2,3]", structuredContent=[1, 2, 3]),
        {"AB310"},
        {"version": "2025-06-18"},
    ),
    Case("text as structured content", text_result("done", structuredContent="done"), {"AB310"}),
    # Proxies and gateways, 3: ContextForge 5472, mcp-mux 206, cloud-sdk 214.
    Case(
        "ContextForge 5472: data and empty content",
        blocks_result(structuredContent={"rows": [{"id": 1}]}),
        {"AB303"},
    ),
    Case(
        "ContextForge 5472: data and no content",
        {"structuredContent": {"rows": []}, "isError": False},
        {"AB102"},
    ),
    Case(
        "cloud-sdk 214: the result flattened to a string",
        text_result('{"content":[{"type":"text","text":"5 °C"}],"isError":false}'),
        {"AB307"},
    ),
    Case(
        "cloud-sdk 214: a flattened error",
        text_result('{"content":[{"type":"text","text":"no such city"}],"isError":true}'),
        {"AB202", "AB307"},
    ),
    Case("mcp-mux 206: content as a string", {"content": "5 °C and cloudy"}, {"AB102"}),
    Case("a gateway's error page", b"<html><body>502 Bad Gateway</body></html>", {"AB100"}),
    Case("a bare string", '"5 °C and cloudy"', {"AB116"}),
    Case("a bare list of blocks", [text_block("5 °C")], {"AB116"}),
    # isError, 9: litellm 37496, kimai_mcp 18, open-liberty 35729, ikanos 685.
    Case("litellm 37496: 401 as a success", text_result("401 Unauthorized"), {"AB201"}),
    Case("an error message after a label", text_result("Error: no such city"), {"AB201"}),
    Case("a status of two words and more", text_result("500 Internal Server Error"), {"AB201"}),
    Case("a status after a word", text_result("HTTP error 404: Not Found"), {"AB201"}),
    Case(
        "an error message as text and as data, as for a tool that returns a str",
        text_result(
            "Error: 401 Unauthorized", structuredContent={"result": "Error: 401 Unauthorized"}
        ),
        {"AB201"},
    ),
    Case(
        "litellm 37496: the provider's error as a success",
        text_result('{"error":{"message":"Invalid API key","type":"auth_error","code":401}}'),
        {"AB202"},
    ),
    Case(
        "kimai_mcp 18: isError is never set",
        text_result("Error: Timesheet 17 not found. Use timesheet_list to find one."),
        {"AB201"},
    ),
    Case(
        "open-liberty 35729: an exception in words",
        text_result("java.lang.IllegalArgumentException: x must be positive"),
        {"AB201"},
    ),
    Case(
        "kimai_mcp: failed to …",
        text_result("Failed to fetch projects: connection timed out after 30 s"),
        {"AB201"},
    ),
    Case("ikanos 685: 204 as an error", text_result("204 No Content", isError=True), {"AB205"}),
    Case("a success flagged as an error", text_result('{"success":true}', isError=True), {"AB205"}),
    Case("isError as text", text_result("no such city", isError="true"), {"AB115"}),
    Case("isError as a number", text_result("no such city: Olso", isError=1), {"AB115"}),
    Case("isError in snake case", text_result("no such city: Olso", is_error=True), {"AB118"}),
    Case(
        "pydantic without aliases: data under another name",
        {
            "content": [text_block('{"id":7}')],
            "structured_content": {"id": 7},
            "is_error": False,
        },
        {"AB118"},
    ),
    Case(
        "pydantic without aliases: a picture without its type",
        blocks_result({"type": "image", "data": PNG, "mime_type": "image/png"}),
        {"AB112", "AB118"},
    ),
    Case(
        "HTTP 429 as a success",
        text_result("Request failed with status code 429"),
        {"AB201"},
    ),
    Case(
        "GraphQL errors as a success",
        text_result('{"errors":[{"message":"Cannot query field \\"x\\""}],"data":null}'),
        {"AB202"},
    ),
    Case("API Gateway's message", text_result('{"message":"Forbidden"}'), {"AB202"}),
    Case(
        "GitHub's message",
        text_result(
            '{"message":"No","documentation_url":"https://docs.github.com","status":"404"}'
        ),
        {"AB202"},
    ),
    Case(
        "a problem as a success",
        text_result('{"type":"about:blank","title":"Gone","status":410,"detail":"it moved"}'),
        {"AB202"},
    ),
    Case(
        "a status and a message",
        text_result('{"statusCode":500,"message":"the pool is empty"}'),
        {"AB202"},
    ),
    Case("FastAPI's detail as a success", text_result('{"detail":"Not Found"}'), {"AB202"}),
    Case(
        "ok: false as a success", text_result('{"ok":false,"error":"channel_not_found"}'), {"AB202"}
    ),
    Case(
        "status: error as a success",
        text_result('{"status":"error","message":"no such repository"}'),
        {"AB202"},
    ),
    Case(
        "success: false in the data",
        text_result(
            '{"success":false,"error":"quota exceeded"}',
            structuredContent={"success": False, "error": "quota exceeded"},
        ),
        {"AB202"},
    ),
    Case(
        "Slack: ok: false with the needed scope",
        text_result(
            '{"ok":false,"error":"missing_scope","needed":"chat:write","provided":"identify"}'
        ),
        {"AB202"},
    ),
    Case(
        "Telegram: a description",
        text_result('{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}'),
        {"AB202"},
    ),
    Case(
        "Notion: an object that is an error",
        text_result(
            '{"object":"error","status":404,"code":"object_not_found","message":"no page"}'
        ),
        {"AB202"},
    ),
    Case(
        "Jira: errorMessages", text_result('{"errorMessages":["no issue"],"errors":{}}'), {"AB202"}
    ),
    Case(
        "AWS: a type and a message",
        text_result('{"__type":"ResourceNotFoundException","message":"no table"}'),
        {"AB202"},
    ),
    Case(
        "JSON:API: errors with titles",
        text_result('{"errors":[{"status":"404","title":"Not Found","detail":"no article"}]}'),
        {"AB202"},
    ),
    Case(
        "FastAPI: validation errors",
        text_result('{"detail":[{"type":"missing","loc":["body","x"],"msg":"Field required"}]}'),
        {"AB202"},
    ),
    Case(
        "zod: validation issues",
        text_result(
            '[{"code":"invalid_type","expected":"string","path":["a"],"message":"Required"}]'
        ),
        {"AB202"},
    ),
    Case(
        "a failure wrapped in a result",
        text_result('{"result":{"success":false,"error":"no such city"}}'),
        {"AB202"},
    ),
    Case(
        "a failure in a fence of Markdown",
        text_result('```json\n{"success": false, "error": "no such city"}\n```'),
        {"AB202"},
    ),
    Case(
        "a gateway's page as the text",
        text_result(
            "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
            "<center><h1>502 Bad Gateway</h1></center><hr><center>nginx</center></body></html>"
        ),
        {"AB201"},
    ),
    Case(
        "awslabs: a message of boto",
        text_result("An error occurred (AccessDenied) when calling the ListBuckets operation: no"),
        {"AB201"},
    ),
    Case(
        "fastmcp: a message of pydantic",
        text_result("1 validation error for call[weather]\ncity\n  Field required [type=missing]"),
        {"AB201"},
    ),
    # Useless error messages, 7 and 8: awslabs 4603, SeleniumBase 4478, SDK v2.
    Case(
        "SDK v2: Error executing tool",
        text_result("Error executing tool bad", isError=True),
        {"AB204"},
    ),
    Case("awslabs 4603: Internal error", text_result("Internal error", isError=True), {"AB204"}),
    Case("an error without content", blocks_result(isError=True), {"AB203"}),
    Case("an error of blanks", text_result("  \n", isError=True), {"AB203"}),
    Case("undefined as an error", text_result("Error: undefined", isError=True), {"AB204"}),
    Case(
        "an object in a JSON string",
        text_result('{"success":false,"error":{"code":"E_DB","message":"no rows"}}', isError=True),
        {"AB207"},
    ),
    Case(
        "fastmcp: a database password", text_result(f"cannot reach {DSN}", isError=True), {"AB502"}
    ),
    Case(
        "fastmcp: a message of the database driver",
        text_result('FATAL: password authentication failed for user "shop"', isError=True),
        {"AB506"},
    ),
    Case(
        "ECONNREFUSED with the address",
        text_result("connect ECONNREFUSED 10.0.3.7:6379", isError=True),
        {"AB506"},
    ),
    Case("a Python traceback", text_result(TRACE, isError=True), {"AB501", "AB507"}),
    Case("a traceback as a success", text_result(TRACE), {"AB201", "AB501"}),
    Case("a Node stack", text_result(NODE_TRACE, isError=True), {"AB501", "AB507"}),
    Case(
        "a .NET stack",
        text_result(
            "Object reference not set\n   at Shop.Api.Get(Int32 id) in D:\\src\\Api.cs:line 12",
            isError=True,
        ),
        {"AB501"},
    ),
    Case(
        "a PHP stack",
        text_result("Uncaught Exception: boom\nStack trace:\n#0 {main}", isError=True),
        {"AB501"},
    ),
    Case(
        "a message of libpq",
        text_result('connection to server at "10.0.0.3", port 5432 failed', isError=True),
        {"AB506"},
    ),
    Case(
        "a path in an error",
        text_result("ENOENT: no such file or directory, open '/home/ada/notes.txt'", isError=True),
        {"AB507"},
    ),
    Case(
        "a panic of Go",
        text_result("panic: no\n\ngoroutine 1 [running]:\nmain.main()", isError=True),
        {"AB501"},
    ),
    Case(
        "a panic of Rust",
        text_result("thread 'main' panicked at src/main.rs:3:5: no", isError=True),
        {"AB501"},
    ),
    Case(
        "a Ruby stack",
        text_result("undefined method\napp/shop.rb:3:in `get'", isError=True),
        {"AB501"},
    ),
    Case(
        "a Java stack",
        text_result(
            "no row\n\tat org.shop.Db.get(Db.java:31)\n\tat org.shop.Api.run(Api.java:9)",
            isError=True,
        ),
        {"AB501"},
    ),
    Case(
        "a message of Oracle",
        text_result("ORA-12154: TNS: no such service", isError=True),
        {"AB506"},
    ),
    Case(
        "a message of PDO",
        text_result("SQLSTATE[HY000] [2002] no such host", isError=True),
        {"AB506"},
    ),
    Case(
        "a message of MySQL",
        text_result("Access denied for user 'shop'@'10.0.0.3' (using password: YES)", isError=True),
        {"AB506"},
    ),
    Case(
        "a message of psycopg",
        text_result("(psycopg2.OperationalError) server closed the connection", isError=True),
        {"AB506"},
    ),
    Case("a path of a web server", text_result("no /var/www/shop/a.ini", isError=True), {"AB507"}),
    Case("a path of a lambda", text_result("cannot find /var/task/a.ini", isError=True), {"AB507"}),
    Case(
        "a path on Windows",
        text_result(r"cannot open C:\Users\ada\notes.txt", isError=True),
        {"AB507"},
    ),
    Case("a path of root's", text_result("cannot open /root/.netrc", isError=True), {"AB507"}),
    Case(
        "a picture beside a null",
        blocks_result({**image_block(PNG), "annotations": None}),
        {"AB305"},
    ),
    # Leaks in any reply, 15.
    Case("a token in a success", text_result(f"export GITHUB_TOKEN={GITHUB}"), {"AB505"}),
    Case(
        "a key in the data",
        text_result('{"aws":"set"}', structuredContent={"aws": "set", "id": AWS}),
        {"AB302", "AB505"},
    ),
    Case("a key in _meta", text_result("ok, sent", _meta={"x": {"key": OPENAI}}), {"AB505"}),
    Case("a Slack token after a line break", text_result(f"token:\n{SLACK}"), {"AB505"}),
    Case(
        "a bearer token",
        text_result("curl -H 'Authorization: Bearer q83hfT2kLmZ04xVbN1cRwE'"),
        {"AB503"},
    ),
    Case("a JSON web token", text_result(f"session={JWT}"), {"AB503"}),
    Case("a JSON web token by itself", text_result(JWT), {"AB503"}),
    Case("HTTP Basic", text_result("sent Authorization: Basic c2hvcDpoVjctdDlhUQ=="), {"AB503"}),
    Case(
        "a connection string in the data",
        text_result(
            '{"ok":1}', structuredContent={"ok": 1, "dsn": f"Server=db;Uid=sa;Pwd={PASSWORD};"}
        ),
        {"AB302", "AB502"},
    ),
    Case(
        "a connection string in an error",
        text_result(f"no route to Server=db;Uid=shop;Password={PASSWORD};", isError=True),
        {"AB502", "AB506"},
    ),
    Case(
        "a password that equals the user name",
        text_result("postgres://shop:shop@db.example.com/shop"),
        {"AB502"},
    ),
    Case(
        "a private key",
        blocks_result({"type": "resource", "resource": {"uri": "file:///k", "text": KEY}}),
        {"AB504"},
    ),
    Case(
        "a password in an envelope's details",
        failed_envelope(
            error={"code": "DB", "message": "no such instance", "details": {"url": DSN}}
        ),
        {"AB502"},
    ),
    # Size, 10 and 11: dbt-mcp 178, fastmcp 4998, onyx 14171.
    Case(
        "dbt-mcp 178: far too many tokens", text_result("select 1 -- a model\n" * 8_000), {"AB602"}
    ),
    Case(
        "fastmcp 4998: a picture in the data too",
        blocks_result(image_block(PNG), structuredContent={"image": {"data": PNG}}),
        {"AB601"},
    ),
    Case(
        "onyx 14171: the same text twice",
        blocks_result(
            text_block("Found 3 documents about the travel policy of the company"),
            text_block("Found 3 documents about the travel policy of the company"),
        ),
        {"AB601"},
    ),
    # Binary, 12: servers 4044, joplin 16141, stdapi.ai 183, mcpo.
    Case(
        "servers 4044: an unknown block type",
        blocks_result({"type": "blob", "data": "UEsDBA==", "mimeType": "application/zip"}),
        {"AB113"},
    ),
    Case(
        "joplin 16141: a data URL in data",
        blocks_result(image_block(f"data:image/png;base64,{PNG}")),
        {"AB403"},
    ),
    Case(
        "stdapi.ai 183: bytes through .json()",
        text_result('{"type":"Buffer","data":[137,80,78,71,13,10,26,10]}'),
        {"AB408"},
    ),
    Case(
        "stdapi.ai 183: bytes read as text", text_result("\ufffdPNG\r\n\x1a\n\x00\x00"), {"AB409"}
    ),
    Case("mcpo: not supported yet", text_result("Embedded resource not supported yet."), {"AB408"}),
    Case("a picture as text", text_result(f"data:image/png;base64,{PNG}"), {"AB409"}),
    Case(
        "base64 with line breaks", blocks_result(image_block(PNG[:60] + "\n" + PNG[60:])), {"AB401"}
    ),
    Case("base64 of another alphabet", blocks_result(image_block("_-_-")), {"AB401"}),
    Case("JPEG called PNG", blocks_result(image_block(JPEG, "image/png")), {"AB402"}),
    Case("a suffix for a media type", blocks_result(image_block(PNG, "png")), {"AB402", "AB406"}),
    Case("a sound called a picture", blocks_result(image_block(WAV, "audio/wav")), {"AB406"}),
    Case("a picture without bytes", blocks_result(image_block("")), {"AB407"}),
    Case(
        "a picture by address",
        blocks_result({"type": "image", "url": "https://x.org/a.png"}),
        {"AB112"},
    ),
    Case(
        "OpenAI's picture",
        blocks_result({"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}),
        {"AB113"},
    ),
    Case(
        "a resource as seed 003 sketches it",
        blocks_result({"type": "resource", "uri": "file:///a.txt"}),
        {"AB112"},
    ),
    Case(
        "a resource with neither text nor blob",
        blocks_result({"type": "resource", "resource": {"uri": "file:///a.txt"}}),
        {"AB112"},
    ),
    Case(
        "a path for a URI",
        blocks_result({"type": "resource_link", "uri": "src/main.rs", "name": "main.rs"}),
        {"AB404"},
    ),
    Case(
        "a Windows path for a URI",
        blocks_result({"type": "resource_link", "uri": "C:\\a.txt", "name": "a.txt"}),
        {"AB404"},
    ),
    Case(
        "a link for an old client",
        blocks_result({"type": "resource_link", "uri": "https://x.org", "name": "x"}),
        {"AB114"},
        {"version": "2025-03-26"},
    ),
    # JSON, 13: python-sdk 3385 and 3305, data-api-builder 3599.
    Case("python-sdk 3385: NaN in the text", text_result('{"mean": NaN, "n": 0}'), {"AB312"}),
    Case(
        "python-sdk 3385: infinity in the data",
        text_result("{}", structuredContent={"max": float("inf")}),
        {"AB302", "AB304"},
    ),
    Case(
        "NaN in the reply itself",
        b'{"content":[],"structuredContent":{"a":NaN}}',
        {"AB303", "AB304"},
    ),
    Case(
        "claude-code 55677: a text that says more than the data",
        text_result("Found 6 candidates: …", structuredContent={"status": "ready", "count": 6}),
        {"AB313"},
    ),
    Case(
        "claude-code 79944: a text, and the data as JSON",
        blocks_result(
            text_block("It is seven."), text_block('{"result":7}'), structuredContent={"result": 7}
        ),
        {"AB313"},
    ),
    Case(
        "claude-code 54737: a picture beside data",
        blocks_result(
            text_block('{"width":1}'),
            image_block(PNG, "image/png"),
            structuredContent={"width": 1},
        ),
        {"AB313"},
    ),
    Case(
        "opencode 38923: a summary beside the data",
        text_result("4 items", structuredContent={"items": [{"id": 1}], "summary": "4 items"}),
        {"AB313"},
    ),
    Case(
        "Yuzu 2951: 50 of 7,253 rows, and nothing says so",
        text_result(
            '{"rows":[1,2]}',
            structuredContent={"rows": [1, 2]},
            _meta={
                "answerback/cut": [{"path": "/rows", "returned": 2, "total": 7253, "unit": "items"}]
            },
        ),
        {"AB605"},
    ),
    Case(
        "python-sdk 3305: a block for each item",
        blocks_result(
            text_block('{"id":1}'),
            text_block('{"id":2}'),
            structuredContent={"result": [{"id": 1}, {"id": 2}]},
        ),
        {"AB306"},
    ),
    Case(
        "python-sdk 3305: a block for each row, and no data",
        blocks_result(text_block('{"id":1}'), text_block('{"id":2}'), text_block('{"id":3}')),
        {"AB306"},
    ),
    Case(
        "python-sdk 3305: nothing for an empty list",
        blocks_result(structuredContent={"result": []}),
        {"AB303"},
    ),
    Case(
        "data-api-builder 3599: explicit nulls",
        blocks_result(
            {"type": "text", "text": "3 rows", "annotations": None, "_meta": None},
            structuredContent=None,
            isError=None,
        ),
        {"AB305"},
    ),
    Case("a dict as Python writes it", text_result("{'id': 7, 'mail': None}"), {"AB309"}),
    Case("a list as Python writes it", text_result("['a', 'b']"), {"AB309"}),
    Case("JSON in JSON", text_result('"{\\"id\\":7}"'), {"AB308"}),
    Case("[object Object]", text_result("[object Object]"), {"AB408"}),
    Case("a coroutine", text_result("<coroutine object fetch at 0x7f3c2a1b4c40>"), {"AB408"}),
    Case("a list of strings", {"content": ["one", "two"]}, {"AB111"}),
    Case("a text that is a number", blocks_result({"type": "text", "text": 42}), {"AB112"}),
    Case(
        "annotations of another scale",
        blocks_result(
            {**text_block("read this"), "annotations": {"priority": 10, "audience": ["human"]}}
        ),
        {"AB405"},
    ),
    Case("no resultType in 2026-07-28", text_result("5 °C"), {"AB117"}, {"version": "2026-07-28"}),
    Case("_meta as a list", text_result("5 °C", _meta=["cached"]), {"AB122"}),
    # Listings, 2 and 4: python-sdk 2626, mcp-wordpress-remote 50, crw 391, portainer-mcp 112.
    Case(
        "mcp-wordpress-remote 50: an input schema that is a list",
        {"tools": [{"name": "posts", "inputSchema": []}]},
        {"AB330"},
    ),
    Case(
        "portainer-mcp 112: an output schema of an array",
        {
            "tools": [
                {
                    "name": "stacks",
                    "inputSchema": {"type": "object"},
                    "outputSchema": {"type": "array"},
                }
            ]
        },
        {"AB331"},
    ),
    # The envelope.
    Case(
        "an envelope with ok",
        {"ok": True, "data": {}},
        {"AB101", "AB102", "AB105"},
        {"dialect": "envelope"},
    ),
    Case("an envelope whose error is text", failed_envelope(error="no such instance"), {"AB109"}),
    Case(
        "an envelope with a code that is a number",
        failed_envelope(error={"code": 404, "message": "no such instance"}),
        {"AB109"},
    ),
    Case("an envelope with null beside success", envelope(error=None), {"AB107"}),
    Case(
        "an envelope whose timestamp is not ISO 8601",
        envelope(timestamp="31.01.2026 12:00"),
        {"AB108"},
    ),
    Case("an envelope with seconds since 1970", envelope(timestamp=1769860800), {"AB108"}),
    Case("an envelope's picture in MCP's form", envelope(content=[image_block(PNG)]), {"AB112"}),
    Case(
        "an envelope with an error message and success: true",
        envelope(content=[text_block("Error: no such instance")]),
        {"AB201"},
    ),
    Case(
        "an envelope with an error message and empty data",
        envelope(content=[text_block("Unable to connect to server")], data={}),
        {"AB201"},
    ),
    Case(
        "an envelope that hides its error", failed_envelope(content=[text_block("Done")]), {"AB208"}
    ),
    Case(
        "REST: an error that is an object", {"error": {"code": 404}}, {"AB119"}, {"dialect": "rest"}
    ),
    Case("REST: a password", {"url": DSN}, {"AB502"}, {"dialect": "rest"}),
    Case("a problem without its members", {"code": "NOT_FOUND"}, {"AB120"}, {"dialect": "problem"}),
    Case(
        "a problem whose status is text",
        {"title": "Not Found", "status": "404", "detail": "no such city"},
        {"AB120"},
        {"dialect": "problem"},
    ),
    Case(
        "a problem whose status is true",
        {"title": "Not Found", "status": True},
        {"AB120"},
        {"dialect": "problem"},
    ),
]


def test_the_corpus_is_large_and_its_names_are_unique() -> None:
    assert len(BAD) >= 60
    assert len({case.name for case in BAD}) == len(BAD)


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_a_bad_reply_is_found_by_exactly_the_rules_that_it_breaks(case: Case) -> None:
    found = validate(case.reply, **case.options)

    assert {each.rule for each in found} == case.rules, found
