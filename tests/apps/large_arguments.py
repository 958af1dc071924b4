"""Tools that accept large arguments of many types, and one quick tool beside them."""

from dataclasses import dataclass
from typing import Annotated, Any

import pydantic
from typing_extensions import TypeAliasType

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


class ModelsWithInit(pydantic.BaseModel):
    models: list[Model]

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)


class CheckedModels(pydantic.BaseModel):
    models: Annotated[list[Model], pydantic.Field(min_length=1, max_length=10_000_000)]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _before(cls, value: Any) -> Any:
        return value

    @pydantic.model_validator(mode="after")
    def _after(self) -> "CheckedModels":
        return self


class EitherModels(pydantic.BaseModel):
    models: list[Model] | dict[str, Model] | None


class ModelPair(pydantic.BaseModel):
    pair: tuple[int, tuple[Model, ...]]


class ClosedModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    a: int = 0


Data = TypeAliasType("Data", "int | list[Data] | dict[str, Data]")


class DataModel(pydantic.BaseModel):
    data: Data


class ModelTables(pydantic.BaseModel):
    tables: list[list[Model]]


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


@app.tool
def models_with_init(x: ModelsWithInit) -> int:
    return len(x.models)


@app.tool
def checked_models(x: CheckedModels) -> int:
    return len(x.models)


@app.tool
def either_models(x: EitherModels) -> int:
    return 1


@app.tool
def model_pair(x: ModelPair) -> int:
    return len(x.pair[1])


@app.tool
def closed_model(x: ClosedModel) -> int:
    return x.a


@app.tool
def data_model(x: DataModel) -> int:
    return 1


@app.tool
def model_tables(x: ModelTables) -> int:
    return len(x.tables)


@app.tool
def named_models(x: dict[str, Model]) -> int:
    return len(x)


if __name__ == "__main__":
    app.run()
