"""An app that does more than reply: it asks, reports, logs, and runs tasks."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypedDict

from answerback import App, Ask, Context, Image, Limits, Message

# Calls wait here for answers that never come; a stop does not wait for them.
app = App("bakery", title="The Bakery", version="2.0.0", limits=Limits(shutdown=0.5))
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d4944415478da63fccff0bf1e0005840280c87a4b440000000049454e44ae426082"
)


class Topping(TypedDict):
    name: str
    amount: Literal["little", "much"]


@app.tool
async def bake(ctx: Context) -> str:
    """Bake a pizza, and ask for its topping."""
    ctx.log("The oven is hot", level="warning")
    ctx.progress(3, 10, "kneading")
    topping = await ctx.elicit("Which topping?", Topping)
    return f"A pizza with {topping['amount']} {topping['name']}"


@app.tool
async def wait(ctx: Context) -> str:
    """Wait for an order that never comes."""
    ctx.progress(1, message="waiting")
    await asyncio.sleep(3600)
    return "done"


@app.tool
async def deliver(ctx: Context) -> str:
    """Deliver bread; the client has to fetch the reply."""
    ctx.log("On the way")
    ctx.close_stream()
    await asyncio.sleep(0.05)
    return "delivered"


class Yeast(TypedDict):
    kind: str


@app.tool(task="optional")
async def ferment(days: int, ctx: Context) -> dict[str, object]:
    """Let the dough rest."""
    yeast = await ctx.elicit("Which yeast?", Yeast)
    return {"days": days, "yeast": yeast["kind"]}


@app.tool(task="required")
async def mature(ctx: Context) -> str:
    """Let a cheese mature, for longer than anybody waits."""
    ctx.progress(2, 100, "turning")
    await asyncio.sleep(3600)
    return "mature"


@app.tool
def add_recipe(name: str) -> str:
    """Add a resource while the server runs."""

    def recipe() -> str:
        return f"The recipe of {name}"

    app.resource(f"bakery://recipes/{name}", name=name)(recipe)
    return "added"


@app.resource("bakery://menu", mime="application/json", title="The menu")
def menu() -> dict[str, float]:
    """What is sold today."""
    return {"bread": 4.5, "cake": 6}


@app.resource("bakery://sign", mime="image/png")
def sign() -> bytes:
    """The picture above the door."""
    return PNG


@app.resource("bakery://orders/{customer}/{number}")
def order(customer: str, number: int) -> str:
    """An order of a customer."""
    return f"{customer} ordered bread as number {number}"


@app.completion("bakery://orders/{customer}/{number}", "customer")
def customers(value: str) -> list[str]:
    """Suggest customers."""
    return [name for name in ("Anna Berg", "Anton", "Bo") if name.startswith(value)]


@app.prompt(title="Describe a cake")
def describe(cake: Annotated[str, "Which cake."], tone: str = "plain") -> list[Message]:
    """Write about a cake."""
    return [
        Message(f"Describe the cake {cake} in a {tone} tone."),
        Message(Image(PNG, "image/png")),
        Message("It is sweet.", role="assistant"),
    ]


@app.completion("describe", "cake")
def cakes(value: str) -> list[str]:
    """Suggest cakes."""
    return [name for name in ("carrot", "cherry", "apple") if name.startswith(value)]


@app.prompt
def order_form(amount: Annotated[int, Ask("How many?")]) -> str:
    """Order bread; the amount is asked for."""
    return f"Order {amount} loaves."


if __name__ == "__main__":
    app.run()
