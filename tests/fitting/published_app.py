"""Tools of published servers whose replies are large: their names and shapes, with made-up values.

The shapes were recorded from the servers, or are those of the API that a tool passes on:
mcp-server-git, mcp-server-fetch, mcp-server-sqlite, code-index-mcp, mcp-server-tree-sitter,
office-word-mcp-server, office-powerpoint-mcp-server, open-meteo-mcp, prometheus-mcp-server,
@modelcontextprotocol/server-filesystem, github-mcp-server and slack-mcp-server.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from pydantic import BaseModel, HttpUrl

from answerback import App, Reply, success

app = App("published", budget=20_000)

WORDS = "The quick brown fox jumps over the lazy dog, and größere Wörter follow."


@app.tool
def git_log() -> Reply[Any]:
    """A text with one paragraph for each commit."""
    commits = [
        f"Commit: {number:040x}\nAuthor: Ada\nDate: 2026-11-17\nMessage: {WORDS}\n"
        for number in range(2000)
    ]
    return success("Commit history:\n" + "\n".join(commits))


@app.tool
def fetch() -> str:
    """A web page in Markdown."""
    return "\n\n".join(f"## Section {number}\n\n{WORDS * 5}" for number in range(500))


@app.tool
def read_query() -> list[dict[str, Any]]:
    """The rows of a query, as objects."""
    return [
        {"id": row, "name": f"row {row}", "price": row / 8, "note": None} for row in range(5000)
    ]


class Match(TypedDict):
    file: str
    line: int
    text: str


class Pagination(TypedDict):
    total_matches: int
    start_index: int
    has_more: bool


class Matches(TypedDict):
    results: list[Match]
    pagination: Pagination


@app.tool
def search_code_advanced() -> Matches:
    """The lines that match, and the author's own count of them."""
    results: list[Match] = [
        {"file": f"./src/module_{line % 40}.py", "line": line, "text": f"    {WORDS}"}
        for line in range(3000)
    ]
    pagination: Pagination = {"total_matches": 3000, "start_index": 0, "has_more": False}
    return {"results": results, "pagination": pagination}


class Line(TypedDict):
    line: int
    text: str
    is_match: bool


class Found(TypedDict):
    file: str
    line: int
    context: list[Line]


@app.tool
def find_text() -> list[Found]:
    """Each match with the lines around it."""

    def lines(number: int) -> list[Line]:
        return [
            {"line": n, "text": WORDS, "is_match": n == number} for n in range(number, number + 5)
        ]

    return [{"file": "util.py", "line": n, "context": lines(n)} for n in range(1000)]


class Paragraph(TypedDict):
    index: int
    text: str
    style: str


class Table(TypedDict):
    index: int
    preview: list[list[str]]


class Outline(TypedDict):
    paragraphs: list[Paragraph]
    tables: list[Table]


@app.tool
def get_document_outline() -> Outline:
    """Paragraphs, and tables with the cells of their first rows."""
    return {
        "paragraphs": [{"index": n, "text": WORDS, "style": "Normal"} for n in range(900)],
        "tables": [{"index": n, "preview": [[WORDS] * 3] * 3} for n in range(90)],
    }


class Slide(TypedDict):
    slide_index: int
    content: dict[str, list[str]]


class Presentation(TypedDict):
    success: Literal[True]
    total_slides: int
    slides_text: list[Slide]
    all_presentation_text_combined: str


@app.tool
def extract_presentation_text() -> Presentation:
    """The text of each slide, and all of it once more in one text."""
    slides: list[Slide] = [
        {"slide_index": n, "content": {"placeholders": [WORDS] * 4, "tables": []}}
        for n in range(300)
    ]
    return {
        "success": True,
        "total_slides": 300,
        "slides_text": slides,
        "all_presentation_text_combined": f"=== SLIDE ===\n{WORDS}\n" * 1200,
    }


class Hourly(TypedDict):
    time: list[str]
    temperature_2m: list[float]
    precipitation: list[float]


class Forecast(TypedDict):
    latitude: float
    longitude: float
    hourly_units: dict[str, str]
    hourly: Hourly


@app.tool
def get_forecast() -> Forecast:
    """Columns of equal length."""
    hours = range(24 * 90)
    return {
        "latitude": 52.52,
        "longitude": 13.41,
        "hourly_units": {"time": "iso8601", "temperature_2m": "°C", "precipitation": "mm"},
        "hourly": {
            "time": [f"2026-{1 + h // 720:02}-{1 + h // 24 % 30:02}T{h % 24:02}:00" for h in hours],
            "temperature_2m": [h % 30 / 2 for h in hours],
            "precipitation": [0.0 for _ in hours],
        },
    }


class Series(TypedDict):
    metric: dict[str, str]
    values: list[tuple[float, str]]


class RangeResult(TypedDict):
    resultType: Literal["matrix"]
    result: list[Series]


@app.tool
def execute_range_query() -> RangeResult:
    """Few series, and many values in each."""
    values = [(1_760_000_000.5 + n, str(n / 7)) for n in range(3000)]
    hosts = ("alpha", "beta", "gamma")
    return {
        "resultType": "matrix",
        "result": [{"metric": {"instance": host}, "values": values} for host in hosts],
    }


class Entry(TypedDict):
    name: str
    type: Literal["file", "directory"]
    children: NotRequired[list[Entry]]


@app.tool
def directory_tree() -> list[Entry]:
    """A tree, in which most of the files are three levels down."""

    def folder(name: str, *children: Entry) -> Entry:
        return {"name": name, "type": "directory", "children": list(children)}

    files: list[Entry] = [{"name": f"file_{n}.txt", "type": "file"} for n in range(4000)]
    return [folder("src", folder("data", *files)), folder("docs")]


class User(BaseModel):
    login: str
    html_url: HttpUrl


class Issue(BaseModel):
    number: int
    title: str
    state: Literal["open", "closed"]
    user: User
    labels: list[str]
    body: str | None


class Issues(BaseModel):
    issues: list[Issue]
    totalCount: int  # noqa: N815 -- the member of GitHub


@app.tool
def list_issues() -> Issues:
    """Models with long texts in them."""
    user = User(login="ada", html_url=HttpUrl("https://github.com/ada"))
    issues = [
        Issue(
            number=n,
            title=f"Issue {n}",
            state="open",
            user=user,
            labels=["bug"],
            body=None if n % 3 else f"{WORDS}\n" * 40,
        )
        for n in range(500)
    ]
    return Issues(issues=issues, totalCount=500)


@app.tool
def conversations_history() -> str:
    """Messages as CSV."""
    rows = [f"{n},U{n % 9},ada,2026-11-17T12:00:00Z,{WORDS}" for n in range(3000)]
    return "\n".join(["MsgID,UserID,UserName,Time,Text", *rows])


if __name__ == "__main__":
    app.run()
