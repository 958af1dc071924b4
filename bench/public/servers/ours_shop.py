"""The shop on Answerback."""

from shop_tools import TOOLS

from answerback import App

app = App("shop")
for tool in TOOLS:
    app.tool(tool)
