"""The tools of seed 004, written with Answerback."""

from __future__ import annotations

from typing import Annotated, TypedDict

from msgspec import Meta

from answerback import (
    App,
    InvalidInput,
    NotFound,
    RateLimited,
    Reply,
    ToolError,
    failure,
    success,
)

app = App("seed-004")
Location = Annotated[str, "City name or zip code"]


class WeatherData(TypedDict):
    temperature: Annotated[float, "Temperature in celsius"]
    conditions: Annotated[str, "Weather conditions description"]
    humidity: Annotated[float, "Humidity percentage"]


class Bmi(TypedDict):
    bmi: float


class Entity(TypedDict):
    name: str


class Created(TypedDict):
    created: Annotated[int, Meta(ge=0)]
    entities: list[Entity]


class Deleted(TypedDict):
    deleted: Annotated[int, Meta(ge=0)]
    entityNames: list[str]


class Fetched(TypedDict):
    temperature: float
    conditions: str


@app.tool(description="Get current weather information for a location")
def get_weather(location: Location) -> Reply:  # type: ignore[type-arg]  # content alone
    if location != "New York":
        raise RateLimited("Failed to fetch weather data: API rate limit exceeded")
    return success(
        "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
    )


@app.tool(description="Get current weather data for a location")
def get_weather_data(location: Location) -> WeatherData:
    if location == "xyz":
        raise NotFound(
            "Location 'xyz' not found. Please provide a valid city name or zip code.",
        )
    return {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}


@app.tool(name="calculate-bmi", title="BMI Calculator", description="Calculate Body Mass Index")
def calculate_bmi(weightKg: float, heightM: float) -> Bmi:  # noqa: N803 -- the seed's names
    return {"bmi": weightKg / (heightM * heightM)}


@app.tool
def create_entities(entities: list[Entity]) -> Created:
    return {"created": len(entities), "entities": entities}


@app.tool
def delete_entities(entityNames: list[str]) -> Deleted:  # noqa: N803 -- the seed's name
    return {"deleted": len(entityNames), "entityNames": entityNames}


@app.tool
def describe_tool(name: str) -> str:
    if not name:
        raise InvalidInput("Tool name is required")
    return f"The tool {name}"


@app.tool(name="fetch-weather", title="Weather Fetcher", description="Get weather data for a city")
async def fetch_weather(city: str) -> Reply[Fetched]:
    if city != "Oslo":
        return failure("Weather API returned 503: Service Unavailable")
    return success(data={"temperature": 5.0, "conditions": "Cloudy"})


@app.tool
def connect() -> str:
    raise ConnectionError("PostgreSQL connection refused at localhost:5432 with user 'admin'")


@app.tool
def connect_safely() -> str:
    raise ToolError("Database connection failed. Please try again later.")


@app.tool
def bad_output() -> WeatherData:
    return {"temperature": "warm"}  # type: ignore[typeddict-item]  # invalid output


if __name__ == "__main__":
    app.run()
