"""An imaginary item family, added as docs/contributing/add-an-item-family.md describes, without a change of any module."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import Any, Final

import pytest

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import Arguments, Delta, EndItem, ForItem, TextDelta
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import Family, Json
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.reducer import fold, ids_in_order
from responses_app.protocol.writer import Writer
from tests.support.protocol.response_strategies import ENDINGS, USAGE, response
from tests.support.weather_tool.family import MEASURING, WEATHER_CALL, MeasurementStarted, WeatherCall, WeatherResult
from tests.support.weather_tool.item_spec import SPEC

EXTENDED: Final = FAMILIES.extended(WEATHER_CALL)
DELTAS: Final[list[Delta]] = [
    WeatherCall("north"),
    Arguments("Os"),
    Arguments("lo"),
    WeatherCall("south"),
    Arguments("Rome"),
    TextDelta("Let me see."),
    ForItem(1, MeasurementStarted()),
    ForItem(0, MeasurementStarted()),
    ForItem(1, WeatherResult(21.5)),
    ForItem(0, WeatherResult(None)),
]


def wire(value: Any) -> Any:
    return json.loads(json.dumps(value))


def numbered_ids(start: int = 0) -> IdFactory:
    numbers = count(start)
    return lambda prefix: f"{prefix}{next(numbers)}"


def written(deltas: list[Delta]) -> tuple[list[Event], Writer]:
    writer = Writer(response(), numbered_ids(), families=EXTENDED)
    events = writer.open()
    for delta in deltas:
        events += writer.write(delta)
    return events, writer


def completed() -> list[Event]:
    events, writer = written(DELTAS)
    stream: list[Event] = wire(events + writer.complete(1, USAGE))
    return stream


def rules(events: Sequence[Json]) -> set[str]:
    return {broken.rule for broken in validate(events, spec=SPEC)}


def test_the_writer_opens_streams_and_closes_its_items() -> None:
    events, writer = written(DELTAS)
    assert [event["type"].removeprefix("response.") for event in events if event.get("output_index") == 1] == [
        "output_item.added",
        "weather_call.in_progress",
        "weather_call_place.delta",
        "weather_call_place.done",
        "weather_call.measuring",
        "weather_call.completed",
        "output_item.done",
    ]
    places = [(item["id"], item["place"], item["degrees"], item["status"]) for item in writer.output.items]
    assert places == [("wc_0", "Oslo", None, "failed"), ("wc_1", "Rome", 21.5, "completed")]


def test_the_reducer_rebuilds_its_items() -> None:
    events = completed()
    assert fold(events, families=EXTENDED) == events[-1]["response"]
    running, _ = written(DELTAS[:8])
    shown = fold(running, families=EXTENDED, open_items=True)["output"]
    assert [(item.get("place"), item["status"]) for item in shown[:2]] == [("Oslo", MEASURING), ("Rome", MEASURING)]


@pytest.mark.parametrize("cut", range(len(DELTAS) + 1))
def test_the_writer_is_restored_at_every_cut(cut: int) -> None:
    logged = wire(written(DELTAS[:cut])[0])
    writer = Writer.restore(logged, numbered_ids(len(ids_in_order(logged))), families=EXTENDED)
    events = logged + [event for delta in DELTAS[cut:] for event in writer.write(delta)] + writer.complete(1, USAGE)
    assert json.dumps(events) == json.dumps(completed())


@pytest.mark.parametrize("ending", ["cut", "fail", "cancel"])
def test_an_ending_closes_its_open_items(ending: str) -> None:
    events, writer = written(DELTAS[:7])
    events = wire(events + ENDINGS[ending](writer))
    assert [item["status"] for item in events[-1]["response"]["output"]] == ["incomplete"] * 3
    assert rules(events) == set()


def test_the_checker_accepts_its_streams_and_knows_its_rules() -> None:
    events = completed()
    assert rules(events) == set()
    measured = next(index for index, event in enumerate(events) if event["type"] == "response.weather_call.measuring")
    assert rules([*events[:measured], *events[measured + 1 :]]) >= {"I7"}
    assert rules([{**event, "place": "x"} if "place" in event else event for event in events]) >= {"C3"}
    assert "S5" in {broken.rule for broken in validate(events)}


def test_the_tables_know_it() -> None:
    assert EXTENDED.id_prefixes["weather_call"] == "wc_"
    assert EXTENDED.of_event("response.weather_call.measuring") is WEATHER_CALL
    assert EXTENDED.item_deltas["WeatherResult"] is WeatherResult
    assert "weather_call" not in EXTENDED.without_status


def test_the_registry_itself_stays_as_it_is() -> None:
    assert "weather_call" not in FAMILIES
    writer = Writer(response(), numbered_ids(), families=FAMILIES)
    writer.open()
    with pytest.raises(ProtocolError, match="WeatherCall"):
        writer.write(WeatherCall("north"))


@pytest.mark.parametrize(
    "family",
    [
        Family(type="weather_call", id_prefix="other_"),
        Family(type="other_call", id_prefix="wc_"),
        Family(type="other_call", id_prefix="other_", opened_by={WeatherCall: ""}),
        Family(type="other_call", id_prefix="other_", argument_stream=WEATHER_CALL.argument_stream),
    ],
    ids=["type", "id prefix", "delta", "event"],
)
def test_a_family_shares_no_name_with_another(family: Family) -> None:
    with pytest.raises(ProtocolError, match="of another family"):
        EXTENDED.extended(family)


def test_an_item_without_arguments_is_left_open_by_the_end_of_the_item() -> None:
    events, writer = written([WeatherCall("north"), EndItem()])
    assert [event["type"] for event in events[-2:]] == ["response.weather_call.in_progress", "response.weather_call_place.done"]
    assert writer.output.all_items[0]["station"] == "north"
