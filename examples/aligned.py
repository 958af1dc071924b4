"""Seed 001: one result, several, or none, under the same JSON on every wire."""

from answerback import App

app = App("aligned", version="1.0.0", contract="aligned")


@app.tool(examples=[{"x": 7, "y": 3}])
def Add(x: int, y: int) -> int:  # noqa: N802 -- the seed's name
    """Add two integers.

    Args:
        x: The first integer.
        y: The second integer.
    """
    return x + y


@app.tool
def DivMod(x: int, y: int) -> tuple[int, int]:  # noqa: N802 -- as the seed names things
    """Divide with remainder.

    Args:
        x: What is divided.
        y: What it is divided by; 0 gives 0 and the whole remainder.
    """
    return divmod(x, y) if y else (0, x)


@app.tool
def Forget() -> None:  # noqa: N802 -- as the seed names things
    """Do something that has no result."""


if __name__ == "__main__":
    app.run()
