"""An app with a tool from a JSON Schema, and tools that take all arguments as one object."""

from typing import Annotated, Any, NotRequired, TypedDict, Unpack

from answerback import AllArguments, App

app = App("schema-tools")

FORECAST = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 2, "description": "The city."},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "hours": {"type": "array", "items": {"type": "integer"}},
        "at": {"$ref": "#/$defs/Place"},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"x": {"type": "number"}},
            "required": ["x"],
        }
    },
}
TEMPERATURES = {
    "type": "object",
    "properties": {"result": {"type": "string"}},
    "required": ["result"],
}


class Order(TypedDict):
    name: str
    count: NotRequired[int]


def forecast(**arguments: Any) -> Any:
    return {"result": 7 if arguments["city"] == "broken" else repr(arguments)}


app.add_tool(
    forecast, description="The weather.", input_schema=FORECAST, output_schema=TEMPERATURES
)


@app.tool
def order(params: Annotated[Order, AllArguments]) -> str:
    return repr(params)


@app.tool
def unpacked(**params: Unpack[Order]) -> str:
    return repr(params)


@app.tool
def anything(params: Annotated[dict[str, Any], AllArguments]) -> str:
    return repr(params)


if __name__ == "__main__":
    app.run()
