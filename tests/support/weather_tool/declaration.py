"""Weather: the declaration of the server tool."""

from __future__ import annotations

from typing import Final

from responses_app.tools.base import ToolExecutor
from responses_app.tools.declaration import ServerTool, ToolCallContext
from tests.support.weather_tool.functions import FUNCTIONS, PAST_CALLS, TYPES
from tests.support.weather_tool.schema import WeatherCallInput, parse_weather


def _open(context: ToolCallContext) -> ToolExecutor:
    from tests.support.weather_tool.executor import WeatherExecutor

    return WeatherExecutor(context.declared)


WEATHER: Final = ServerTool(
    name="weather",
    types=TYPES,
    functions=FUNCTIONS,
    past_calls=PAST_CALLS,
    open=_open,
    parse=parse_weather,
    input_items={"weather_call": WeatherCallInput},
)
