"""Weather tool of a run: stations that know the temperature of two places."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from responses_app.protocol.deltas import Delta
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import Json
from responses_app.tools.base_executor import ServerToolExecutor
from responses_app.tools.offer import ServerToolOffer
from tests.support.weather_tool.family import MeasurementStarted, WeatherCall, WeatherResult
from tests.support.weather_tool.functions import FUNCTIONS, TYPES

DEGREES = {"Oslo": 4.5, "Rome": 21.5}


class WeatherExecutor(ServerToolExecutor):
    """Weather tool, a `ToolExecutor`."""

    call_type = "weather_call"
    repeatable = True

    def __init__(self, tool: Json) -> None:
        self._station = str(tool["station"])

    async def prepare(self, items: Sequence[Json]) -> None:
        """Do nothing: the tool refers to nothing that is stored."""

    def offer(self, items: Sequence[Json]) -> ServerToolOffer:
        """Return the offer of the function."""
        del items
        return ServerToolOffer(TYPES, FUNCTIONS, lambda _: WeatherCall(self._station))

    async def run(self, call: Json, report: Callable[[Delta], None]) -> WeatherResult:
        """Measure the temperature of the place that the model names."""
        report(MeasurementStarted())
        try:
            place = parse_arguments(call["place"])["place"]
            return WeatherResult(DEGREES[place], model_text=f"{place} has {DEGREES[place]} degrees.")
        except (InvalidArguments, KeyError):
            return self.failure(call, "The station does not know this place.")

    def failure(self, call: Json, message: str) -> WeatherResult:
        """Return the end of a call that failed with `message`."""
        del call
        return WeatherResult(None, model_text=message)

    async def close(self) -> None:
        """Do nothing: a measurement leaves nothing open."""
