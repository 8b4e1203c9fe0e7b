"""Rules of the weather family for the independent checker of streams."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.conformance.spec import SPECS, ItemSpec, StreamSpec

STAGES: Final = ("in_progress", "measuring", "completed")
SPEC: Final[StreamSpec] = SPECS["openai"].extended(
    ItemSpec(
        type="weather_call",
        final_statuses=frozenset({"completed", "incomplete", "failed"}),
        empty={"place": ("",), "degrees": (None,)},
        named=("station",),
        argument_stream=("weather_call_place", "place"),
        stages={"": STAGES[:1], STAGES[0]: STAGES[1:2], STAGES[1]: STAGES[2:]},
    ),
    *(f"response.weather_call.{stage}" for stage in STAGES),
    *(f"response.weather_call_place.{part}" for part in ("delta", "done")),
)
