"""An app with every feature that the console has a view for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated

from msgspec import Meta

from answerback import App, Context, NotFound, Reply, success
from answerback.options import Shown, Task

app = App("harbour", title="The Harbour", version="2.0.0")
app.widget("berths", html="<p>Berths</p>")
SHIPS = {"Fram": 39.0, "Gjøa": 21.3, "Maud": 36.5}


class Quay(Enum):
    NORTH = "north"
    SOUTH = "south"


@dataclass
class Ship:
    name: str
    metres: Annotated[float, Meta(gt=0, le=400)]


@app.tool(read_only=True, tags=["ships"], raises=[NotFound])
def ship(name: Annotated[str, "Its name, such as Fram."]) -> Reply[Ship]:
    """Find a ship by its name."""
    if name not in SHIPS:
        raise NotFound(f"There is no ship {name}", hint=f"try one of {', '.join(SHIPS)}")
    return success(f"{name} is {SHIPS[name]} m long.", Ship(name, SHIPS[name]))


@app.tool(tags=["ships", "berths"])
def berth(
    ships: list[Ship], quay: Quay, on: date, nights: Annotated[int, Meta(ge=1, le=30)] = 1
) -> dict[str, str]:
    """Reserve berths for some ships."""
    return {each.name: f"{quay.value}, {nights} nights from {on}" for each in ships}


@app.tool(tags=["berths"], read_only=True, widget=Shown("berths"))
def berths() -> list[str]:
    """Show the free berths."""
    return ["north 1", "south 3"]


@app.tool(read_only=True)
async def tide(ctx: Context, hours: int = 2) -> str:
    """Watch the tide, with progress and messages."""
    for hour in range(hours):
        ctx.progress(hour + 1, hours, f"hour {hour + 1}")
        ctx.log(f"hour {hour + 1} of {hours}", "info")
        await asyncio.sleep(0)
    return "high"


@app.tool
async def pilot(ctx: Context) -> str:
    """Ask which pilot is wanted."""
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await ctx.elicit("Which pilot?", form)
    return f"{answer['name']} is on the way"


@app.tool(task=Task("optional"))
def dredge(metres: int = 5) -> str:
    """Dredge the harbour, as a task."""
    return f"{metres} m deeper"


@app.resource("harbour://rules")
def rules() -> str:
    """The rules of the harbour."""
    return "Moor on the leeward side."


@app.resource("harbour://ships/{name}")
def papers(name: str) -> str:
    """The papers of a ship."""
    return f"{name} is registered in Oslo."


@app.prompt
def greeting(ship: str) -> str:
    """Greet a ship."""
    return f"Write a greeting for {ship}."


if __name__ == "__main__":
    app.run()
