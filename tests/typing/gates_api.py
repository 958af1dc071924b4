"""Uses gates and prompts as users do. Type-checked, not run."""

from typing import Any, TypedDict, assert_type
from uuid import UUID

from answerback import App, Context, Limits, Reply, success
from answerback.auth import User
from answerback.gates import (
    Redeemed,
    Refusal,
    UsedFiles,
    link_prompt,
    linked,
    login,
    login_prompt,
    scope,
    subscription,
    subscription_prompt,
)
from answerback.options import Access

app = App(
    "bank",
    requires=[login()],
    access=Access(challenge="http", used_tokens=UsedFiles("/var/lib/bank/used")),
    limits=Limits(gates=5),
)


class Balance(TypedDict):
    cents: int


async def has_plan(ctx: Context) -> bool:
    return True


async def owns(ctx: Context, customer: UUID) -> None:
    raise Refusal("no", "LINK_REQUIRED", hint="link it", url="https://a.example", feature="a")


@app.tool(
    requires=[
        scope("a", "b", hide=True),
        subscription("pro", check=has_plan, url="https://a.example/plans"),
        linked("plaid", check=has_plan),
        owns,
    ]
)
async def balance(customer: UUID, ctx: Context) -> Reply[Balance]:
    user: User | None = ctx.user
    if user is None:
        return login_prompt("your balance")
    if not user.scopes:
        return subscription_prompt("your balance", user, plan="pro")
    if not user.claims:
        return await link_prompt(user, ctx.request.headers, service="plaid")
    return success("You have 7", Balance(cents=7))


@app.resource("note://a", requires=[login()])
def note() -> str:
    return "a"


@app.prompt(requires=[login()])
def ask(what: str) -> str:
    return what


@app.completion("ask", "what", requires=[login()])
def whats(value: str) -> list[str]:
    return [value]


def redeem(token: str, user: Any) -> None:
    assert_type(app.redeem(token, user), Redeemed)


Access(challenge="header")  # type: ignore[arg-type]  # there is no such form
login(True)  # type: ignore[call-arg]  # hide is given by name
scope(7)  # type: ignore[arg-type]  # a scope is text
