"""Columns of the page: the original and up to three runs, each with its figures, items, open calls and differences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, Final

from django.http import Http404, HttpRequest

from responses_app.models import Response
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.content import tool_outputs
from responses_app.tools.recorded.calls import call_key
from responses_app.web.render.item_blocks import ItemBlock, ItemRenderer, call_id_of
from responses_app.web.render.sanitize import visible
from responses_app.web.rerun import editors
from responses_app.web.rerun.differences import Differences, differences
from responses_app.web.rerun.turns import Turn, load_turn, recorded_answers, unmatched_call
from responses_app.web.response.detail import get_response
from responses_app.web.response.outcome import Outcome, outcome
from responses_app.web.response.problem_notice import ProblemNotice, problem_notices
from responses_app.web.response.properties import finish_reason
from responses_app.web.responses.rows import ResponseStats

MAX_COLUMNS: Final = 3
MAX_VALUE_CHARS: Final = 4_000
APPROVAL: Final = "mcp_approval_response"
MODES: Final = ("recorded", "live", "ask")


@dataclass(frozen=True, slots=True)
class OpenCall:
    """Call that a person may answer. `output_type` is the type of the item that answers the call."""

    uid: str
    title: str
    output_type: str

    @property
    def is_approval(self) -> bool:
        """Return whether the call needs an approval, not a result."""
        return self.output_type == APPROVAL


def open_call(item: Mapping[str, Any]) -> OpenCall:
    """Return the call for the form."""
    family = FAMILIES[item["type"]]
    return OpenCall(call_id_of(item), visible(str(call_key(item))), family.output.type if family.output else "")


@dataclass
class Column:
    """Column of a run, or of a variant that has not run. `original` is None for the column of the original itself.

    `is_compared` marks responses that are compared and are no reruns. `name` is the heading.
    """

    place: int
    model: str
    changes: str = ""
    turn: Turn | None = None
    original: Turn | None = None
    mode: str = "recorded"
    is_rerun: bool = field(default=False)
    is_compared: bool = False
    name: str = ""

    @property
    def rows(self) -> Sequence[Response]:
        """Responses of the column."""
        return [step.row for step in self.turn.steps] if self.turn is not None else ()

    @property
    def stats(self) -> ResponseStats:
        """Figures of the first response."""
        return ResponseStats(self.rows[0])

    @property
    def rate(self) -> float | None:
        """Output tokens per second of generation over all responses; None if a time is unknown."""
        rates = [(row.output_tokens or 0, ResponseStats(row).rate) for row in self.rows]
        seconds = [tokens / rate for tokens, rate in rates if rate]
        return sum(tokens for tokens, rate in rates if rate) / sum(seconds) if seconds else None

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Input tokens, cached tokens and output tokens of all responses."""
        sums = ((row.input_tokens or 0, row.cached_tokens or 0, row.output_tokens or 0) for row in self.rows)
        totals = [sum(values) for values in zip(*sums, strict=True)]
        return totals[0], totals[1], totals[2]

    @property
    def is_running(self) -> bool:
        """Return whether the last response runs."""
        return self.turn is not None and self.turn.last.row.ended_at is None

    @property
    def finish(self) -> str:
        """Why the turn ended, in the words of the API."""
        if self.turn is None:
            return ""
        return finish_reason(self.turn.last.row, self.turn.last.snapshot, has_calls=bool(self.turn.open_calls))

    @property
    def has_output(self) -> bool:
        """Return whether there is anything that can be valid."""
        return any(step.snapshot.get("output") for step in self.turn.steps) if self.turn else False

    @property
    def problems(self) -> Sequence[ProblemNotice]:
        """Invalid calls and texts of the output."""
        return [notice for step in self.turn.steps for notice in problem_notices(step.snapshot)] if self.turn else ()

    @property
    def outcome(self) -> Outcome | None:
        """Notice of the last response."""
        return outcome(self.turn.last.row, self.turn.last.snapshot) if self.turn is not None else None

    def steps(self) -> Iterator[tuple[Response, Sequence[ItemBlock]]]:
        """Yield each response with the blocks of its output. Answers stand beside their calls."""
        for step in self.turn.steps if self.turn is not None else ():
            yield step.row, self._blocks[step.row.uid]

    @cached_property
    def _blocks(self) -> Mapping[str, Sequence[ItemBlock]]:
        return _render(self.turn) if self.turn is not None else {}

    @property
    def open_calls(self) -> Sequence[OpenCall]:
        """Calls of an ended run that wait for an answer."""
        if self.turn is None or not self.is_rerun or self.is_running:
            return ()
        return [open_call(call) for call in self.turn.open_calls]

    @property
    def next_input(self) -> str:
        """Recorded input that answers the open calls, as JSON; empty without, and unless the tools are recorded."""
        if self.mode != "recorded" or self.turn is None or self.original is None or not self.open_calls:
            return ""
        answers = recorded_answers(self.original, self.turn)
        return json.dumps(answers) if answers else ""

    @property
    def next_original(self) -> str:
        """Id of the original's response that the next response of the run repeats."""
        if self.turn is None or self.original is None:
            return ""
        steps = self.original.steps
        return steps[min(len(self.turn.steps), len(steps) - 1)].row.uid

    @property
    def stopped(self) -> tuple[str, Sequence[str]] | None:
        """The call without a recorded answer, and the calls of the original; None unless the run has stopped there."""
        if self.mode != "recorded" or self.turn is None or self.original is None or not self.open_calls:
            return None
        call = unmatched_call(self.original, self.turn)
        if call is None:
            return None
        return visible(str(call_key(call))), [visible(str(call_key(one))) for one in self.original.calls]

    @property
    def parameters(self) -> str:
        """Request of the last response without input, as JSON, for the request that continues the run."""
        row = self.turn.last.row if self.turn is not None else None
        return json.dumps({"model": row.model, **editors.request_fields(row)}) if row is not None else ""

    @cached_property
    def differences(self) -> Differences | None:
        """Differences from the original; None for the original and for a run without a response."""
        return differences(self.original, self.turn) if self.original is not None and self.turn is not None else None


def load_columns(request: HttpRequest, row: Response, original: Turn) -> tuple[list[Column], Response]:
    """Return the columns that the address names, and the response whose request the editors show.

    A value of `column` is the id of a response, or the name of a model, with a blank and JSON of changed fields behind it.
    """
    values = [value[:MAX_VALUE_CHARS] for value in request.GET.getlist("column") if value][:MAX_COLUMNS]
    mode = mode_of(request)
    runs = {value: get_response(request, value) for value in values if value.startswith("resp_")}
    if any(run.project != row.project for run in runs.values()):
        raise Http404("The responses belong to different projects.")
    base = next((run for run in runs.values() if run.rerun_of == row.uid), row)
    columns = []
    for place, value in enumerate(values or [row.model], 1):
        if value in runs:
            columns.append(run_column(place, runs[value], original, mode, base))
        else:
            model, _, changes = value.partition(" ")
            columns.append(Column(place, model, changes, original=original, mode=mode))
    _set_names(columns)
    return columns, base


def original_column(row: Response, turn: Turn, columns: Sequence[Column]) -> Column:
    """Return the column of the original beside `columns`, named as the first response beside compared responses."""
    is_compared = any(column.is_compared for column in columns)
    return Column(0, row.model, turn=turn, is_compared=is_compared, name="Response 1" if is_compared else "Original")


def _set_names(columns: Iterable[Column]) -> None:
    """Set the headings: compared responses count from 2, as the original is the first, and runs from 1. As in rerun/page.js."""
    responses, runs = count(2), count(1)
    for column in columns:
        column.name = f"Response {next(responses)}" if column.is_compared else f"Run {next(runs)}"


def run_column(place: int, run: Response, original: Turn, mode: str, base: Response | None = None) -> Column:
    """Return the column of a run, or of any other response that is compared."""
    row = original.steps[0].row
    is_rerun = run.rerun_of == row.uid
    changes = editors.column_changes(run, base) if is_rerun and base is not None else ""
    return Column(place, run.model, changes, load_turn(run), original, mode, is_rerun, is_compared=not is_rerun)


def mode_of(request: HttpRequest) -> str:
    """Return how the tools of the runs are answered."""
    mode = request.GET.get("tools", "")
    return mode if mode in MODES else MODES[0]


def _render(turn: Turn) -> dict[str, Sequence[ItemBlock]]:
    outputs = tool_outputs.summaries(turn.last.row.project, [dict(item) for step in turn.steps for item in step.output])
    renderer, blocks = ItemRenderer(tool_outputs=outputs), dict[str, Sequence[ItemBlock]]()
    for place, step in enumerate(turn.steps):
        # The answers are attached to the calls of the step before.
        shown = renderer.blocks(step.input) if place else []
        blocks[step.row.uid] = [*shown, *renderer.blocks(step.output)]
    return blocks
