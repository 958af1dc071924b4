"""Calls of the SQLite server; the later ones need the earlier ones."""

from __future__ import annotations

from tests.ported.answers import ToolCall, same_change, same_names, same_rows, same_text


def _read(query: str) -> ToolCall:
    return ToolCall("read_query", {"query": query}, same_rows)


def _write(query: str) -> ToolCall:
    return ToolCall("write_query", {"query": query}, same_change)


def _create(query: str) -> ToolCall:
    return ToolCall("create_table", {"query": query}, same_text)


CALLS = [
    ToolCall("list_tables", {}, same_names),
    _create("CREATE TABLE city (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, area REAL)"),
    _create("create table visit (city INTEGER REFERENCES city, note TEXT, photo BLOB)"),
    ToolCall("list_tables", {}, same_names),
    ToolCall("describe_table", {"table_name": "city"}, same_rows),
    ToolCall("describe_table", {"table_name": "visit"}, same_rows),
    _write("INSERT INTO city VALUES (1, 'Oslo', 454.0), (2, 'Tromsø', 2521.3), (3, '東京', NULL)"),
    _write("insert into visit values (1, 'rain', x'00ff10'), (1, NULL, NULL), (3, 'a ''b''', x'')"),
    _read("SELECT * FROM city"),
    _read("SELECT * FROM visit"),
    _read("  select count(*) AS n FROM visit"),
    _read("SELECT name, area * 2 AS twice FROM city WHERE area > 1000"),
    _read("SELECT city.name, note FROM visit JOIN city ON city.id = visit.city ORDER BY note"),
    _read("SELECT * FROM city WHERE id = 99"),
    _read("SELECT 1 AS a, 2.5 AS b, 'x' AS c, NULL AS d, x'01' AS e"),
    _read("SELECT 9007199254740993 AS big"),
    _write("UPDATE city SET area = 627 WHERE id = 3"),
    _write("UPDATE city SET area = 0 WHERE id = 99"),
    _write("DELETE FROM visit WHERE note IS NULL"),
    _read("SELECT area FROM city ORDER BY id"),
    ToolCall("append_insight", {"insight": "It rains in Oslo."}, same_text),
    ToolCall("append_insight", {"insight": "東京 is larger."}, same_text),
    ToolCall("read_query", {"query": "DELETE FROM city"}, words="SELECT"),
    ToolCall("read_query", {"query": "SELECT * FROM nowhere"}, words="no such table: nowhere"),
    ToolCall("read_query", {"query": "SELECT size FROM city"}, words="no such column"),
    ToolCall("read_query", {"query": "SELECT * FORM city"}, words="syntax error"),
    ToolCall("read_query", {"query": ""}, words="SELECT"),
    ToolCall("read_query", {}, words="query: missing"),
    ToolCall("read_query", {"sql": "SELECT 1"}, words="sql: unknown argument"),
    ToolCall("write_query", {"query": "SELECT 1"}, words="INSERT"),
    ToolCall(
        "write_query",
        {"query": "INSERT INTO city VALUES (4, 'Oslo', 1)"},
        words="UNIQUE constraint failed",
    ),
    ToolCall("write_query", {"query": "INSERT INTO city VALUES (5)"}, words="3 columns"),
    ToolCall("create_table", {"query": "CREATE TABLE city (id)"}, words="already exists"),
    ToolCall("create_table", {"query": "DROP TABLE city"}, words="CREATE TABLE"),
    ToolCall("describe_table", {}, words="table_name: missing"),
]
