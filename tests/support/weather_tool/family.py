"""Item family of the weather tool, as docs/contributing/add-an-item-family.md describes a family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from responses_app.protocol.events import ArgumentStreamSpec, Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_INCOMPLETE_OR_FAILED, Arguments, Delta, Family, Item
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.protocol.items.streamed_call import StreamedCall

MEASURING: Final = "measuring"


@dataclass(slots=True)
class WeatherCall(Delta):
    """The beginning of a weather call; `Arguments` carry the place."""

    station: str


@dataclass(slots=True)
class MeasurementStarted(Delta):
    """The start of a measurement."""


@dataclass(slots=True)
class WeatherResult(ToolResult):
    """The measured temperature, None if the station does not answer."""

    degrees: float | None


class OpenWeatherCall(StreamedCall):
    """An open weather call."""

    __slots__ = ()

    def mark_measuring(self, _delta: MeasurementStarted) -> list[Event]:
        """End the place and show that the station measures."""
        return [*self.wait_for_result(), self.progress(MEASURING)]

    def finish(self, delta: WeatherResult) -> list[Event]:
        """Close the call with the temperature."""
        status = "failed" if delta.degrees is None else "completed"
        done = self.done({"place": self.arguments, "degrees": delta.degrees, "status": status})
        return [done] if delta.degrees is None else [self.progress("completed"), done]


def _initial(delta: WeatherCall, _new_id: IdFactory) -> Item:
    return {"status": "in_progress", "station": delta.station, "place": "", "degrees": None}


WEATHER_CALL: Final = Family(
    type="weather_call",
    id_prefix="wc_",
    tool="weather",
    runs_on_server=True,
    item=OpenWeatherCall,
    opened_by={WeatherCall: ""},
    initial=_initial,
    steps={Arguments: OpenWeatherCall.append, MeasurementStarted: OpenWeatherCall.mark_measuring},
    results={WeatherResult: OpenWeatherCall.finish},
    argument_stream=ArgumentStreamSpec(
        delta="response.weather_call_place.delta", done="response.weather_call_place.done", key="place"
    ),
    progress=("in_progress", MEASURING, "completed"),
    running_status=MEASURING,
    final_statuses=COMPLETED_INCOMPLETE_OR_FAILED,
)
