"""A small app: two typed functions, served on every wire."""

from math import isfinite

from answerback import App, InvalidInput

app = App("calculator", version="1.0.0")


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers.

    Args:
        x: The first number.
        y: The second number.
    """
    return x + y


@app.tool(raises=[InvalidInput])
def divide(x: float, y: float) -> float:
    """Divide one number by another.

    Args:
        x: The dividend.
        y: The divisor.
    """
    if y == 0:
        raise InvalidInput("division by zero", hint="give a y other than 0")
    result = x / y
    if not isfinite(result):
        raise InvalidInput("the result is too large for a float")
    return result


if __name__ == "__main__":
    app.run()
