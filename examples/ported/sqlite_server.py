"""A SQLite database and a memo: the tools of `mcp-server-sqlite`, written for Answerback.

Run it with `DATABASE=shop.db python examples/ported/sqlite_server.py mcp`.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from answerback import App, Conflict, Context, InvalidInput, Message, NotFound

MEMO = "memo://insights"
WRITES = ("insert", "update", "delete", "replace")


class State:
    """The file of the database, and the insights of this process."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.insights: list[str] = []

    def connect(self) -> closing[sqlite3.Connection]:
        # A connection for each call, because calls run in several threads.
        connection = sqlite3.connect(self.path)
        connection.row_factory = sqlite3.Row
        return closing(connection)


@contextmanager
def database() -> Iterator[State]:
    state = State(os.environ.get("DATABASE", "test.db"))
    with state.connect():
        yield state


app = App("sqlite", version="1.0.0", lifespan=database)

Row = dict[str, Any]


@dataclass
class Column:
    cid: int
    name: str
    type: str
    notnull: int
    dflt_value: str | None
    pk: int


class Changes(TypedDict):
    affected_rows: int


@app.tool(read_only=True, raises=[InvalidInput])
def read_query(query: Annotated[str, "A SELECT statement."], ctx: Context[State]) -> list[Row]:
    """Run a SELECT statement and return its rows."""
    _require(query, ("select",), "read_query runs SELECT statements only")
    with ctx.state.connect() as connection:
        return [dict(row) for row in _run(connection, query)]


@app.tool(destructive=True, raises=[InvalidInput, Conflict])
def write_query(
    query: Annotated[str, "An INSERT, UPDATE or DELETE statement."], ctx: Context[State]
) -> Changes:
    """Change rows, and return how many."""
    _require(query, WRITES, "write_query runs INSERT, UPDATE, DELETE and REPLACE statements only")
    with ctx.state.connect() as connection, connection:
        return {"affected_rows": _run(connection, query).rowcount}


@app.tool(raises=[InvalidInput, Conflict])
def create_table(
    query: Annotated[str, "A CREATE TABLE statement."], ctx: Context[State]
) -> Literal["Table created successfully"]:
    """Create a table."""
    _require(query, ("create table",), "create_table runs CREATE TABLE statements only")
    with ctx.state.connect() as connection, connection:
        _run(connection, query)
    return "Table created successfully"


@app.tool(read_only=True)
def list_tables(ctx: Context[State]) -> list[str]:
    """List the names of the tables."""
    with ctx.state.connect() as connection:
        rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return [row["name"] for row in rows]


@app.tool(read_only=True, raises=[NotFound])
def describe_table(
    table_name: Annotated[str, "The name of a table."], ctx: Context[State]
) -> list[Column]:
    """List the columns of a table."""
    with ctx.state.connect() as connection:
        rows = connection.execute("SELECT * FROM pragma_table_info(?)", (table_name,)).fetchall()
    if not rows:
        tables = ", ".join(list_tables(ctx)) or "none yet"
        raise NotFound(f"There is no table {table_name!r}", hint=f"the tables are: {tables}")
    return [Column(**dict(row)) for row in rows]


@app.tool
def append_insight(
    insight: Annotated[str, "What the data shows."], ctx: Context[State]
) -> Literal["Insight added to memo"]:
    """Add an insight to the memo."""
    ctx.state.insights.append(insight)
    app.resource_changed(MEMO)
    return "Insight added to memo"


@app.resource(MEMO, name="Business Insights Memo", mime="text/plain")
def memo(ctx: Context[State]) -> str:
    """The insights so far."""
    insights = ctx.state.insights
    if not insights:
        return "No business insights have been discovered yet."
    return "\n".join(["Insights:", *(f"- {each}" for each in insights)])


@app.prompt(name="mcp-demo")
def demo(topic: Annotated[str, "What the data should be about."]) -> list[Message]:
    """Start a demonstration with made-up data."""
    text = (
        f"Show me what this SQLite server can do, with {topic} as the topic. Create two or three "
        "tables with create_table, fill them with write_query, and offer me questions that "
        "read_query can answer. Keep what we learn with append_insight; the resource "
        f"{MEMO} collects it."
    )
    return [Message(text)]


def _require(query: str, starts: tuple[str, ...], message: str) -> None:
    words = " ".join(query.lower().split())
    if not words.startswith(starts):
        raise InvalidInput(message, code="WRONG_STATEMENT", details={"query": query[:200]})


def _run(connection: sqlite3.Connection, query: str) -> sqlite3.Cursor:
    try:
        return connection.execute(query)
    except sqlite3.IntegrityError as error:
        raise Conflict(f"Database error: {error}") from error
    except sqlite3.Error as error:
        raise InvalidInput(f"Database error: {error}", code="SQL_ERROR") from error


if __name__ == "__main__":
    app.run()
