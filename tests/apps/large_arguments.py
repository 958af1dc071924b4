"""Tools that accept large arguments of many types, and one quick tool beside them."""

from dataclasses import dataclass

import pydantic

from answerback import App

app = App("large-arguments")


@dataclass
class Point:
    x: int
    y: int


@dataclass
class Circle:
    radius: int = 1


@dataclass
class Square:
    side: int = 1


@dataclass
class Batch:
    points: list[Point]


@dataclass
class Tree:
    kids: list["Tree"]


class Model(pydantic.BaseModel):
    a: int = 0


class ModelBatch(pydantic.BaseModel):
    models: list[Model]


class Numbers(pydantic.BaseModel):
    numbers: list[int]


@app.tool
def quick() -> int:
    return 1


@app.tool
def numbers(x: list[int]) -> int:
    return len(x)


@app.tool(inline=True)
def inline_number(x: int) -> int:
    return x


@app.tool
def shares(x: list[float]) -> int:
    return len(x)


@app.tool
def named(x: dict[str, int]) -> int:
    return len(x)


@app.tool
def tables(x: list[list[int]]) -> int:
    return len(x)


@app.tool
def deep_tables(x: list[list[list[list[list[int]]]]]) -> int:
    return len(x)


@app.tool
def deep_names(x: list[dict[str, dict[str, int]]]) -> int:
    return len(x)


@app.tool
def point_tables(x: list[list[Point]]) -> int:
    return len(x)


@app.tool
def batches(x: list[Batch]) -> int:
    return len(x)


@app.tool
def tree(x: Tree) -> int:
    return len(x.kids)


@app.tool
def points(x: list[Point]) -> int:
    return len(x)


@app.tool
def circles(x: list[Circle]) -> int:
    return len(x)


@app.tool
def figures(x: list[Circle | Square]) -> int:
    return len(x)


@app.tool
def batch(x: Batch) -> int:
    return len(x.points)


@app.tool
def models(x: list[Model]) -> int:
    return len(x)


@app.tool
def model_batch(x: ModelBatch) -> int:
    return len(x.models)


@app.tool
def number_model(x: Numbers) -> int:
    return len(x.numbers)


if __name__ == "__main__":
    app.run()
