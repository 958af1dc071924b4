"""A small program."""


def twice(number: int) -> int:
    """Return a number twice."""
    return 2 * number


def main() -> int:
    return twice(21)
