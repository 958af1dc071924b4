"""One tool for each type in the table of strings that are read, and a strict one."""

import dataclasses
from typing import Any, Literal

import pydantic

from answerback import App
from answerback.options import Values


@dataclasses.dataclass
class Point:
    x: int


class User(pydantic.BaseModel):
    age: int
    tags: list[int] = []


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "int-or-null": int | None,
    "int-or-bool": int | bool,
    "literal": Literal[1, 2],
    "list": list[int],
    "tuple": tuple[int, bool],
    "dict": dict[str, int],
    "record": Point,
    "records": Point | list[Point],
    "model": User,
    "str": str,
    "int-or-str": int | str,
    "strings": list[str],
    "anything": Any,
}

app = App("lenient", version="1.0.0")
strict = App("strict", version="1.0.0", values=Values(lenient=False))


def _tool(annotation: Any) -> Any:
    def show(value: Any) -> str:
        return repr(value)

    show.__annotations__["value"] = annotation
    return show


for name, annotation in TYPES.items():
    app.add_tool(_tool(annotation), name=name)
    app.add_tool(_tool(annotation), name=f"strict-{name}", values=Values(lenient=False))
    strict.add_tool(_tool(annotation), name=name)

if __name__ == "__main__":
    app.run()
