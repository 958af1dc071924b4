"""An app with widgets, for the tests with official clients."""

from answerback import CSP, App, Reply, success
from answerback.options import Access, Shown

app = App("bank", access=Access(url="https://example.com/mcp"))
app.widget(
    "accounts",
    html="<!doctype html><html><head><title>Accounts</title></head><body></body></html>",
    csp=CSP(
        connect=["https://api.example.com"],
        resources=["https://*.cdn.example.com"],
        frames=["https://video.example.com"],
        base_uris=["https://www.example.com"],
        redirects=["https://pay.example.com"],
    ),
    domain="https://accounts.example.com",
    border=True,
    description="Balances of all accounts",
    permissions={"camera", "microphone", "geolocation", "clipboardWrite"},
    host="claude",
)
app.widget("plain", html="<p>Nothing more</p>")


@app.tool(widget=Shown("accounts", invoking="Loading…", invoked="Done"), read_only=True)
def accounts() -> Reply[dict[str, int]]:
    """List the accounts."""
    return success("One account", {"savings": 7}, {"token": "for the widget alone"})


@app.tool(widget=Shown("plain", visible_to={"app"}))
def refresh() -> int:
    return 1


@app.tool
def add(x: int, y: int) -> int:
    return x + y


if __name__ == "__main__":
    app.run()
