"""An app with widgets: the tests of the console look at them and use them."""

from __future__ import annotations

import os

from answerback import CSP, App, Context, Forbidden, NotFound
from answerback.options import Shown

DECLARED = os.environ.get("DECLARED_ORIGIN", "https://tides.example")
"""The origin that the page may use."""

PAGE = """
<!doctype html>
<title>Tides</title>
<style>
  body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--color-text-primary) }
  h1 { font-size: 18px; margin: 0 0 8px } p { margin: 0 0 8px }
</style>
<h1>Loading</h1>
<p id="theme"></p>
<p id="answer"></p>
<button id="next">Next tide</button>
<button id="model">Ask for the secret</button>
<button id="link">Open the map</button>
<button id="talk">Talk</button>
<script>
  const app = answerback.connect();
  const write = (id, text) => (document.querySelector(id).textContent = text);
  const press = (id, act) => (document.querySelector(id).onclick = act);
  app.onData((data) => write("h1", `${data.harbour}: ${data.height} m`));
  app.onTheme((theme) => write("#theme", theme));
  press("#next", async () => {
    const { data } = await app.call("next_tide", app.input);
    write("#answer", `then ${data.height} m`);
  });
  press("#model", async () => write("#answer", (await app.call("secret")).error.message));
  press("#link", () => app.openLink("https://example.com/map"));
  press("#talk", () => app.sendMessage("How high is the water?"));
</script>
"""


def closed(ctx: Context) -> None:
    raise Forbidden("the chart is only for pilots")


app = App("tides", title="Tides of the North")
app.widget("tide", html=PAGE, csp=CSP(connect=[DECLARED]))
app.widget("chart", html="<h1>Chart</h1>", requires=[closed])


@app.tool(read_only=True, widget="tide")
def tide(harbour: str) -> dict[str, str | float]:
    """Show the height of the water in a harbour."""
    if harbour == "Atlantis":
        raise NotFound("there is no harbour Atlantis")
    return {"harbour": harbour, "height": 1.5}


@app.tool(widget=Shown(visible_to={"app"}))
def next_tide(harbour: str) -> dict[str, str | float]:
    """Find the next height of the water, for the widget."""
    return {"harbour": harbour, "height": 2.25}


@app.tool(widget=Shown(visible_to={"model"}))
def secret() -> str:
    """Tell a model something that no widget may ask for."""
    return "a secret"


@app.tool(widget="chart", destructive=False)
def chart() -> str:
    """Show a chart that only pilots see."""
    return "the chart"


if __name__ == "__main__":
    app.run()
