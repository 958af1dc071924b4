"""A small program."""

from util import twice


def main() -> None:
    """Print a number."""
    print(twice(21))
