"""How one value is gone over, and what was found on the way."""

from typing import Any, NoReturn

from . import nodes
from .describe import describe, kind_name, show
from .nodes import Node
from .problems import Problem
from .scalars import advice

MOST_PROBLEMS = 50


class TooManyProblems(Exception):
    """Ends a walk that has found more problems than are kept; they are in the walk."""


class Walk:
    """How one value is gone over, and what was found on the way."""

    __slots__ = (
        *("ended_early", "lenient", "problems", "prune", "repair"),
        *("repairs", "shown", "strays", "unions"),
    )

    def __init__(
        self,
        *,
        repair: bool = True,
        lenient: bool = False,
        prune: bool = False,
        shown: bool = True,
    ) -> None:
        self.repair = repair
        self.lenient = lenient
        self.prune = prune
        # What a function returned may be secret; what it was sent is the sender's own.
        self.shown = shown
        self.problems: list[Problem] = []
        self.ended_early = False
        # How far the value is from what the type would write: repairs, then stray or absent keys.
        self.repairs = 0
        self.strays = 0
        # Without it, nested unions of recursive types would take exponential time.
        self.unions: dict[tuple[int, int, bool], Verdict] = {}

    def wrong(self, node: Node, value: Any, path: str) -> Any:
        """Note that *value* is not what *node* takes."""
        expected, got = describe(node), show(value) if self.shown else kind_name(value)
        message, hint = f"expected {expected}, got {got}", _advice(node, value)
        self.report(path, message, expected=expected, got=got, hint=hint)
        return value

    def report(self, path: str, message: str, **more: str | None) -> None:
        """Note one problem; raises TooManyProblems instead once there are enough."""
        if len(self.problems) == MOST_PROBLEMS:
            self.end()
        self.problems.append(Problem(path=path, message=message, **more))

    def end(self) -> NoReturn:
        """End the walk early, by TooManyProblems."""
        self.ended_early = True
        raise TooManyProblems

    def apart(self, *, lenient: bool = False) -> "Walk":
        """A walk of the same sort for a trial; it shares what is known of unions."""
        trial = Walk(repair=self.repair, lenient=lenient, prune=self.prune, shown=self.shown)
        trial.unions = self.unions
        return trial


def _advice(node: Node, value: Any) -> str | None:
    """How a value that is text in JSON is written; of several, the first."""
    node = nodes.plain(node)
    if isinstance(node, nodes.Union):
        return next((told for each in node.members if (told := _advice(each, value))), None)
    return advice(node, value) if isinstance(node, nodes.Scalar) else None


class Verdict:
    """What became of a value in one walk."""

    __slots__ = ("data", "member", "value", "walk")

    def __init__(self, value: Any, data: Any, walk: Walk, member: Node | None = None) -> None:
        # Kept because verdicts are filed under its id.
        self.value = value
        self.data = data
        self.walk = walk
        self.member = member
