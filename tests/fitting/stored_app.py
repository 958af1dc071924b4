"""An app whose task has a result over its budget."""

from __future__ import annotations

from answerback import App

app = App("jobs", budget=1000)


@app.tool(task="optional")
def numbers() -> list[int]:
    return list(range(5000))


if __name__ == "__main__":
    app.run()
