"""An app with gates, for users who log in with test tokens."""

from __future__ import annotations

from answerback import App, Context
from answerback.auth import OAuth
from answerback.gates import linked, login, scope

app = App(
    "bank",
    auth=OAuth(
        issuer="https://login.example.com", url="https://bank.example.com/mcp", anonymous=True
    ),
)


async def has_linked(ctx: Context) -> bool:
    return False


@app.tool(read_only=True)
def rates() -> dict[str, float]:
    """The rates, for everybody."""
    return {"EUR": 1.0}


@app.tool(read_only=True, requires=[login(), scope("accounts:read")])
def balance(ctx: Context) -> str:
    """The user's balance."""
    return f"{ctx.user.subject} has 7 EUR"


@app.tool(requires=[linked("plaid", check=has_linked, url="https://bank.example.com/link")])
def accounts() -> list[str]:
    """The names of the linked accounts."""
    return []


@app.tool(task="required", requires=[login()])
def statement(ctx: Context) -> str:
    """Write a statement as a task."""
    return f"The statement of {ctx.user.subject}"


if __name__ == "__main__":
    app.run()
