"""An app whose tasks write down each start, for tests that kill its workers."""

import os
import time

from answerback import App, Limits

app = App("crashing", limits=Limits(shutdown=1))
STARTS = os.environ.get("STARTS", "")


def note(line: str) -> None:
    with open(STARTS, "a") as file:
        file.write(line + "\n")


@app.tool(task="required")
def once(n: int) -> int:
    """Take effect; must never start twice."""
    note(f"once {n}")
    time.sleep(0.5)
    return n


@app.tool(task="required", idempotent=True)
async def again(n: int) -> int:
    """May start again."""
    note(f"again {n}")
    time.sleep(0.01)
    return n


if __name__ == "__main__":
    app.run()
