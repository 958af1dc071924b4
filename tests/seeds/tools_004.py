"""The tools that seed 004 shows, as they are written here."""

from __future__ import annotations

from typing import Annotated, TypedDict

from answerback import App, RateLimited, Reply, ToolError, success

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
    created: int
    entities: list[Entity]


@app.tool(description="Get current weather information for a location")
def get_weather(location: Location) -> Reply:  # type: ignore[type-arg]  # content alone
    if location != "New York":
        raise RateLimited("Failed to fetch weather data: API rate limit exceeded")
    return success(
        "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy",
    )


@app.tool(description="Get current weather data for a location")
def get_weather_data(location: Location) -> WeatherData:
    return {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}


@app.tool(name="calculate-bmi", title="BMI Calculator", description="Calculate Body Mass Index")
def calculate_bmi(weightKg: float, heightM: float) -> Bmi:  # noqa: N803 -- the seed's names
    return {"bmi": weightKg / (heightM * heightM)}


@app.tool
def create_entities(entities: list[Entity]) -> Created:
    return {"created": len(entities), "entities": entities}


@app.tool
def connect() -> str:
    raise ConnectionError("PostgreSQL connection refused at localhost:5432 with user 'admin'")


@app.tool
def connect_kindly() -> str:
    raise ToolError("Database connection failed. Please try again later.")


@app.tool
def bad_output() -> WeatherData:
    return {"temperature": "warm"}  # type: ignore[typeddict-item]  # what is tested


if __name__ == "__main__":
    app.run()
