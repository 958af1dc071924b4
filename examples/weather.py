"""The `direct` contract: the weather of a dozen cities, from fixed data."""

from typing import Annotated, TypedDict

from answerback import App, NotFound

app = App("weather", version="1.0.0", contract="direct")


class Weather(TypedDict):
    location: str
    temperature: float
    conditions: str
    humidity: int
    wind_speed: float


_CITIES: dict[str, tuple[float, str, int, float]] = {
    "Oslo": (5, "Cloudy", 78, 12),
    "Bergen": (7, "Rain", 91, 18),
    "Tromsø": (-3, "Snow", 84, 9),
    "København": (9, "Overcast", 80, 14),
    "Reykjavík": (2, "Sleet", 86, 25),
    "London": (11, "Drizzle", 82, 16),
    "Paris": (13, "Partly cloudy", 70, 10),
    "Madrid": (19, "Sunny", 45, 8),
    "New York": (16, "Clear", 55, 13),
    "São Paulo": (24, "Thunderstorm", 77, 7),
    "東京": (18, "Clear", 60, 11),
    "Sydney": (22, "Sunny", 58, 15),
}


@app.tool(raises=[NotFound], examples=[{"location": "Oslo"}])
def weather(location: Annotated[str, "A city, such as Oslo."]) -> Weather:
    """Get the current weather of a city."""
    by_name = {name.casefold(): name for name in _CITIES}
    name = by_name.get(location.strip().casefold())
    if name is None:
        raise NotFound(
            f"Location not found: {location}",
            code="LOCATION_NOT_FOUND",
            hint=f"try one of {', '.join(_CITIES)}",
        )
    temperature, conditions, humidity, wind = _CITIES[name]
    return {
        "location": name,
        "temperature": temperature,
        "conditions": conditions,
        "humidity": humidity,
        "wind_speed": wind,
    }


@app.tool
def cities() -> list[str]:
    """List the cities that have weather data."""
    return list(_CITIES)


if __name__ == "__main__":
    app.run()
