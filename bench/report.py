"""Prints one line for each figure, and whether it is within its limit."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True):
    what: str
    ratio: float
    limit: float
    at_most: bool
    detail: str

    @property
    def holds(self) -> bool:
        return self.ratio <= self.limit if self.at_most else self.ratio >= self.limit


def show(figures: list[Figure]) -> int:
    """Print the figures as a table, and return how many miss their limits."""
    width = max(len(figure.what) for figure in figures)
    for figure in figures:
        sign = "<=" if figure.at_most else ">="
        mark = "ok  " if figure.holds else "FAIL"
        print(
            f"{mark} {figure.what:{width}}  {figure.ratio:6.2f}"
            f"  (wanted {sign} {figure.limit:g})  {figure.detail}"
        )
    return sum(not figure.holds for figure in figures)
