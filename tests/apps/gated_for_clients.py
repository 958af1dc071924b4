"""An app with gates, for the official clients; the key of the user is public, for tests alone."""

from answerback import App, Context
from answerback.auth import ApiKey, ApiKeys
from answerback.gates import linked, login, scope

# The digest of the key "ab_0123456789abcdefghijklmnopqrstuvwxyz".
DIGEST = "cefdf119fd177f98b64663ae63ec48af8177ae870bdbd3f4306aaf5b3df17eb0"

app = App("bank", auth=ApiKeys({DIGEST: ApiKey(name="anna", scopes=("read",))}, anonymous=True))


async def has_linked(ctx: Context) -> bool:
    return False


@app.tool(requires=[login(), scope("read")])
def balance(account: str) -> dict[str, int]:
    """The balance of an account."""
    return {account: 7}


@app.tool(requires=[scope("write")])
def pay(amount: int) -> int:
    """Pay an amount."""
    return amount


@app.tool(requires=[linked("plaid", check=has_linked, url="https://bank.example.com/link")])
def accounts() -> list[str]:
    """The names of the accounts."""
    return []


if __name__ == "__main__":
    app.run()
