"""The `aligned` contract: one result, several or none, as the same JSON on every wire."""

from answerback import App

app = App("aligned", version="1.0.0", contract="aligned")


@app.tool(examples=[{"x": 7, "y": 3}])
def Add(x: int, y: int) -> int:  # noqa: N802 -- the name in the convention
    """Add two integers.

    Args:
        x: The first integer.
        y: The second integer.
    """
    return x + y


@app.tool
def DivMod(x: int, y: int) -> tuple[int, int]:  # noqa: N802 -- in the style of the convention
    """Divide with remainder.

    Args:
        x: The dividend.
        y: The divisor; 0 gives the quotient 0 and the remainder x.
    """
    return divmod(x, y) if y else (0, x)


@app.tool
def Forget() -> None:  # noqa: N802 -- in the style of the convention
    """Do something that has no result."""


if __name__ == "__main__":
    app.run()
