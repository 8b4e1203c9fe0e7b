"""Function of the weather tool, as the model is offered it, and earlier calls, as the model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from responses_app.tools.base import Json
from responses_app.tools.declaration import STRING, PastCall, define_function, fields_or_status

TYPES: Final = frozenset({"weather"})
MEASURE: Final = "measure"
FUNCTIONS: Final[Mapping[str, Json]] = {
    MEASURE: define_function(MEASURE, "Measures the temperature of a place.", {"place": STRING}, ["place"])
}
PAST_CALLS: Final = {
    "weather_call": PastCall(lambda _: MEASURE, lambda item: str(item["place"]), lambda item: fields_or_status(item, "degrees"))
}
