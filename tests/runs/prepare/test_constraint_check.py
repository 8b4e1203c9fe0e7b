"""Of several schemas the one that a compiler refuses is named, and what the compiler says of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from responses_app.dialects.constraints.structural_tag import json_value
from responses_app.engine_interface import Constraint, RequestRejected
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.errors import InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.grammars import check_constraints


class RejectingEngine(ReplayEngine):
    """Engine that cannot compile a `pattern`, with the error messages of xgrammar."""

    def check_constraint(self, constraint: Constraint) -> None:
        if '"pattern"' in json.dumps(constraint.value).replace("\\", ""):
            alone = constraint.kind == "json"
            raise RequestRejected(
                "Failed: [02:18:42] /a/regex_converter.cc:83: Unclosed '['" if alone else "Invalid structural tag."
            )


GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
BAD = {"type": "object", "properties": {"a": {"type": "string", "pattern": "["}}}
TAG = Constraint("structural_tag", json.dumps(BAD))


def tool(parameters: Any) -> dict[str, Any]:
    return {"type": "function", "name": "f", "parameters": parameters, "strict": True}


@pytest.mark.parametrize(
    ("more", "where", "code"),
    [
        ({"tools": [tool(GOOD), tool(BAD)]}, "tools[1].parameters", "invalid_function_parameters"),
        (
            {"tools": [tool(None), {"type": "namespace", "name": "n", "tools": [tool(GOOD), tool(BAD)]}]},
            "tools[1].tools[1].parameters",
            "invalid_function_parameters",
        ),
        ({"format": {"type": "json_schema", "schema": BAD, "strict": False}}, "text.format.schema", "invalid_json_schema"),
        ({"format": {"type": "json_schema", "schema": BAD, "strict": True}}, "text.format.schema", "invalid_json_schema"),
    ],
)
def test_invalid_schema_is_refused_by_path(more: dict[str, Any], where: str, code: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        asyncio.run(
            check_constraints(RejectingEngine(), CreateRequest(project="p", key=None, model="m", input=[], **more), TAG)
        )
    assert (raised.value.param, raised.value.code, raised.value.message) == (where, code, "Invalid schema: Unclosed '['")


def test_error_without_a_bad_schema_has_the_engine_message() -> None:
    with pytest.raises(InvalidRequest) as raised:
        asyncio.run(
            check_constraints(
                RejectingEngine(), CreateRequest(project="p", key=None, model="m", input=[], tools=[tool(GOOD)]), TAG
            )
        )
    assert (raised.value.param, raised.value.message) == ("tools", "Invalid schema: Invalid structural tag.")


class CompilingEngine(ReplayEngine):
    """Engine that compiles with the xgrammar installed here."""

    has_xgrammar = True


@pytest.mark.engine
@pytest.mark.parametrize(("engine", "kind"), [(CompilingEngine(), "grammar"), (ReplayEngine(), "json_schema")])
def test_constraint_of_an_engine_with_xgrammar_has_bounds(engine: ReplayEngine, kind: str) -> None:
    constraint = Constraint("structural_tag", {"type": "structural_tag", "format": json_value(GOOD)})
    create_request = CreateRequest(project="p", key=None, model="m", input=[])
    checked = asyncio.run(check_constraints(engine, create_request, constraint))
    assert checked is not None
    assert isinstance(checked.value, dict)
    assert checked.value["format"]["type"] == kind
