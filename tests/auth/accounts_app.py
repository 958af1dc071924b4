"""An app for the tests of logins: python accounts_app.py serve; ISSUER and URL are in the
environment."""

from __future__ import annotations

import os

from answerback import App, Context
from answerback.auth import OAuth
from answerback.gates import scope

app = App(
    "accounts",
    auth=OAuth(
        issuer=os.environ["ISSUER"],
        url=os.environ["URL"],
        scopes=["accounts:read"],
        hierarchy={"accounts:write": ["accounts:read"]},
    ),
)


@app.tool
async def who(ctx: Context) -> str:
    return f"{ctx.user.subject} {' '.join(sorted(ctx.user.scopes))}"


@app.tool(requires=[scope("accounts:write")])
async def transfer(ctx: Context) -> str:
    return f"{ctx.user.subject} {' '.join(sorted(ctx.user.scopes))}"


if __name__ == "__main__":
    app.run()
