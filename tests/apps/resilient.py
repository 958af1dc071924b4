"""An app whose tools have retries, a breaker and limits; the file in RUNS counts their runs."""

from __future__ import annotations

import os
from pathlib import Path

from answerback import App
from answerback.resilience import Breaker, Limit, Retry

app = App("resilient")
soon = Retry(attempts=3, wait=lambda attempt: 0.01)
much_later = Retry(attempts=3, wait=lambda attempt: 50.0)
RUNS = Path(os.environ.get("RUNS", os.devnull))


def fail_twice(name: str) -> str:
    with RUNS.open("a") as file:
        file.write(f"{name}\n")
    runs = RUNS.read_text().split().count(name)
    if runs < 3:
        raise ConnectionResetError("the upstream closed the connection")
    return f"{name} after {runs}"


@app.tool(retry=soon, idempotent=True)
def plain() -> str:
    return fail_twice("plain")


@app.tool(retry=soon, idempotent=True, inline=True)
def inline() -> str:
    return fail_twice("inline")


@app.tool(retry=soon, idempotent=True, timeout=60)
async def with_await() -> str:
    return fail_twice("with_await")


@app.tool(retry=much_later, idempotent=True)
def patient() -> str:
    with RUNS.open("a") as file:
        file.write("patient\n")
    raise ConnectionResetError


@app.tool(limit=Limit("1/min"))
def once() -> str:
    return "once"


@app.tool(limit=Limit("1/min", per="address"))
def once_for_each() -> str:
    return "once"


@app.tool(breaker=Breaker("upstream", failures=1, reset=40))
def broken() -> str:
    raise ConnectionResetError


if __name__ == "__main__":
    app.run()
