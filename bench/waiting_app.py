"""Tools that take large arguments over HTTP, and a quick one beside them."""

from dataclasses import dataclass

import pydantic

from answerback import App

app = App("bench")


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


class Model(pydantic.BaseModel):
    a: int = 0


class ModelBatch(pydantic.BaseModel):
    models: list[Model]


@app.tool
def quick() -> int:
    """Return at once."""
    return 1


@app.tool
def numbers(x: list[int]) -> int:
    """Count numbers, which msgspec decodes by itself."""
    return len(x)


@app.tool
def tables(x: list[list[int]]) -> int:
    """Count tables."""
    return len(x)


@app.tool
def points(x: list[Point]) -> int:
    """Count records."""
    return len(x)


@app.tool
def figures(x: list[Circle | Square]) -> int:
    """Count records of two classes, for which Python code chooses the class of each."""
    return len(x)


@app.tool
def models(x: list[Model]) -> int:
    """Count models, each of which pydantic reads by itself."""
    return len(x)


@app.tool
def model_batch(x: ModelBatch) -> int:
    """Count models that pydantic reads at once."""
    return len(x.models)


if __name__ == "__main__":
    app.run()
