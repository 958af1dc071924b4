"""A bank in three tiers: log in, subscribe, link a bank account; then see balances in a widget.

`python examples/accounts.py serve` needs no identity provider: it issues test tokens itself. The
user ada has nothing yet, bob has subscribed, cy has linked a bank too; docs/guides/accounts.md has
the commands of each tier. The database is SQLite in memory, or the file that ACCOUNTS_DB names.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from html import escape
from typing import Annotated
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from answerback import App, Context, Reply, failure, success
from answerback.auth import Credentials, OAuth, Unauthorized, User
from answerback.auth.development import DevelopmentOAuth
from answerback.gates import LinkRefused, Redeemed, linked, login, scope, subscription
from answerback.options import Shown


class Account(msgspec.Struct):
    name: str
    kind: str
    balance: float


class AccountBalancesContent(msgspec.Struct, rename="camel"):
    accounts: list[Account]
    total_balance: float
    last_updated: datetime


class Transaction(msgspec.Struct):
    day: date
    text: str
    amount: float


class TransactionsContent(msgspec.Struct):
    account: str
    transactions: list[Transaction]


TABLES = """
CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS subscriptions (user TEXT, plan TEXT, PRIMARY KEY (user, plan));
CREATE TABLE IF NOT EXISTS links (user TEXT, service TEXT, PRIMARY KEY (user, service));
CREATE TABLE IF NOT EXISTS accounts (name TEXT PRIMARY KEY, kind TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS transactions (account TEXT, day TEXT, text TEXT, cents INTEGER);
"""
USERS = [("ada",), ("bob",), ("cy",)]
ACCOUNTS = [
    ("Checking", "depository", 234567),
    ("Savings", "depository", 890000),
    ("Credit card", "credit", -45000),
    ("Brokerage", "investment", 120000),
    ("Travel fund", "depository", 35000),
]
TRANSACTIONS = [
    ("Checking", "2026-11-02", "Rent", -120000),
    ("Checking", "2026-11-05", "Groceries", -8432),
    ("Checking", "2026-11-13", "Salary", 310000),
    ("Savings", "2026-11-14", "Transfer from Checking", 50000),
    ("Credit card", "2026-11-09", "Train tickets", -12950),
]


class Bank:
    """Users, their subscriptions and links, and the accounts that everyone sees in this demo."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.executescript(TABLES)
        if self.has("SELECT 1 FROM users"):
            return
        self.db.executemany("INSERT INTO users VALUES (?)", USERS)
        self.db.executemany("INSERT INTO accounts VALUES (?, ?, ?)", ACCOUNTS)
        self.db.executemany("INSERT INTO transactions VALUES (?, ?, ?, ?)", TRANSACTIONS)
        for user in ("bob", "cy"):
            self.db.execute("INSERT INTO subscriptions VALUES (?, 'pro')", (user,))
        self.db.execute("INSERT INTO links VALUES ('cy', 'plaid')")

    def has(self, query: str, *values: str) -> bool:
        return self.db.execute(query, values).fetchone() is not None

    def grant(self, user: str, wanted: Redeemed) -> None:
        """Give *user* what the link was for."""
        table = "subscriptions" if wanted.code == "SUBSCRIPTION_REQUIRED" else "links"
        self.db.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", (user, wanted.name))


@contextmanager
def open_bank() -> Iterator[Bank]:
    bank = Bank(os.environ.get("ACCOUNTS_DB", ":memory:"))
    yield bank
    bank.db.close()


def has_plan(ctx: Context[Bank]) -> bool:
    query = "SELECT 1 FROM subscriptions WHERE user = ? AND plan = 'pro'"
    return ctx.state.has(query, ctx.user.subject)


def has_link(ctx: Context[Bank]) -> bool:
    query = "SELECT 1 FROM links WHERE user = ? AND service = 'plaid'"
    return ctx.state.has(query, ctx.user.subject)


app = App(
    "accounts",
    version="1.0.0",
    contract="apps",
    description="The bank accounts of the user: balances and transactions.",
    lifespan=open_bank,
    # With an identity provider: OAuth(issuer="https://login.example.com", url="https://…/mcp")
    auth=OAuth.development(anonymous=True),
)
app.widget("accounts", path="accounts.html", description="Balances, and payments of an account")
TIERS = [
    login(),
    scope("accounts:read"),
    subscription("pro", check=has_plan, url="/subscribe", feature="your accounts"),
    linked("plaid", check=has_link, url="/link", feature="your accounts"),
]


@app.tool(requires=TIERS, widget=Shown("accounts", invoking="Reading balances…"), read_only=True)
def balances(ctx: Context[Bank]) -> Reply[AccountBalancesContent]:
    """Show the balance of every account."""
    rows = ctx.state.db.execute("SELECT name, kind, cents FROM accounts ORDER BY rowid").fetchall()
    total = sum(cents for _, _, cents in rows) / 100
    accounts = [Account(name, kind, cents / 100) for name, kind, cents in rows]
    return success(
        f"Found {len(rows)} accounts with total balance of ${total:,.2f}",
        AccountBalancesContent(accounts, total, datetime.now(UTC)),
    )


@app.tool(requires=TIERS, widget=Shown("accounts", invoking="Reading payments…"), read_only=True)
def transactions(
    ctx: Context[Bank],
    account: Annotated[str, "The name of an account, such as Checking."],
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10,
    since: date | None = None,
) -> Reply[TransactionsContent]:
    """Show the payments of one account, the newest first.

    Args:
        limit: How many payments at most.
        since: The first day.
    """
    if not ctx.state.has("SELECT 1 FROM accounts WHERE name = ?", account):
        names = ", ".join(name for name, _, _ in ACCOUNTS)
        return failure(f"There is no account {account!r}", "NOT_FOUND", hint=f"there are {names}")
    query = "SELECT day, text, cents FROM transactions WHERE account = ? AND day >= ?"
    query += " ORDER BY day DESC LIMIT ?"
    rows = ctx.state.db.execute(query, (account, (since or date.min).isoformat(), limit))
    found = [Transaction(date.fromisoformat(day), text, cents / 100) for day, text, cents in rows]
    text = f"Transactions of {account}: {len(found)}"
    return success(text, TransactionsContent(account, found))


PAGE = """<!doctype html><meta name="viewport" content="width=device-width"><title>{title}</title>
<body style="font: 16px system-ui; margin: 3em auto; max-width: 24em"><h1>{title}</h1>
{body}
"""
LOGIN = """<form><input type="hidden" name="token" value="{token}">
<label>Your name <input name="user" placeholder="ada"></label> <button>Log in</button></form>"""
CONFIRM = """<form method="post" action="?token={token}"><p>You are logged in as {user}.</p>
<button>{title}</button></form>"""


async def visitor(request: Request) -> User | None:
    """The user who is logged in: curl sends a token, a browser the cookie of `show`."""
    cookie = request.cookies.get("login", "")
    sent = request.headers.get("authorization", cookie and f"Bearer {cookie}")
    headers = [(b"authorization", sent.encode())] if sent else []
    with suppress(Unauthorized):
        return await issuer().authenticate(Credentials("GET", "/", b"", headers))
    return None


def issuer() -> DevelopmentOAuth:
    assert isinstance(app.auth, DevelopmentOAuth)
    return app.auth


@app.route("/subscribe")
@app.route("/link")
async def show(request: Request) -> Response:
    """A form; a GET redeems nothing, because programs follow links to preview them."""
    token = request.query_params.get("token", "")
    title = "Subscribe to pro" if request.url.path == "/subscribe" else "Link your bank"
    user = await visitor(request)
    name = request.query_params.get("user", "")
    if user is None and app.state.has("SELECT 1 FROM users WHERE name = ?", name):
        # A real site asks for a password.
        again = RedirectResponse(f"?token={quote(token)}", 303)
        again.set_cookie("login", issuer().issue(name), httponly=True, samesite="lax")
        return again
    form = LOGIN if user is None else CONFIRM
    values = {"token": escape(token), "user": escape(user.subject if user else "")}
    return HTMLResponse(PAGE.format(title=title, body=form.format(title=title, **values)))


@app.route("/subscribe", methods=["POST"])
@app.route("/link", methods=["POST"])
async def redeem(request: Request) -> Response:
    user = await visitor(request)
    if user is None:
        return PlainTextResponse("Log in first\n", 401)
    try:
        wanted = app.redeem(request.query_params.get("token", ""), user)
    except LinkRefused as exc:
        return PlainTextResponse(f"{exc}\n", 403)
    app.state.grant(user.subject, wanted)
    return PlainTextResponse(f"Done: {user.subject} has {wanted.name!r} now. Ask again.\n")


if __name__ == "__main__":
    app.run()
