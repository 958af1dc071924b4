"""Two tools and one widget, for hosts that show widgets. DECLARED is an origin it may reach."""

import os

import msgspec

from answerback import CSP, App, Reply, success
from answerback.gates import subscription_prompt
from answerback.options import Shown

app = App("bank", version="1.0")
declared = os.environ.get("DECLARED", "https://api.example.com")
app.widget(
    "accounts",
    path="accounts.html",
    csp=CSP(connect=[declared]),
    border=True,
    description="A table of the accounts of one owner.",
)

BALANCES = {"Ada": {"Checking": 1250.0, "Savings": 18400.5}, "Bob": {}}


class Account(msgspec.Struct):
    name: str
    balance: float


class Accounts(msgspec.Struct):
    owner: str
    accounts: list[Account]


@app.tool(
    widget=Shown("accounts", invoking="Reading accounts", invoked="Accounts read"), read_only=True
)
def accounts(owner: str = "Ada") -> Reply[Accounts]:
    """Show the accounts of one owner.

    Args:
        owner: The name of the owner.
    """
    if owner == "Bob":
        return subscription_prompt("accounts", owner, plan="pro", url="https://bank.example/plans")
    rows = [Account(name, balance) for name, balance in BALANCES.get(owner, {}).items()]
    return success(
        f"{len(rows)} accounts of {owner}", Accounts(owner, rows), meta={"currency": "EUR"}
    )


@app.tool(widget=Shown(visible_to={"app"}), read_only=True)
def history(account: str) -> list[str]:
    """List the last payments of an account.

    Args:
        account: The name of the account.
    """
    return [f"{account}: rent -800.00", f"{account}: salary 2100.00"]


if __name__ == "__main__":
    app.run()
