"""Models that are not loaded yet, in the forms of the clients."""

from __future__ import annotations

from pathlib import Path

from responses_app.api_formats.messages.models import model_list
from responses_app.connect.codex_models import MAX_COMMAND_OUTPUT, codex_model
from responses_app.connect.facts import ModelFacts
from responses_app.runs.models import parse_models


def test_a_model_that_is_not_loaded_yet_has_no_context(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (model,) = model_list(parse_models(f"m=vllm://{tmp_path}"), 10)["data"]
    assert (model["id"], model["max_input_tokens"]) == ("m", None)


def test_codex_reads_no_context_of_a_model_that_is_not_loaded_yet() -> None:
    model = codex_model(ModelFacts("m", 0))
    assert (model["context_window"], model["max_context_window"]) == (None, None)
    assert model["truncation_policy"]["limit"] == MAX_COMMAND_OUTPUT
