"""LoRA adapters before the start: modules that the model does not have, and memory."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from numpy import zeros
from safetensors.numpy import save_file

from responses_app.engines.adapter_files import adapters_size, modules_problem
from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import prepare

RANK, HIDDEN, OUT = 8, 64, 32
QUERY = "layers.0.self_attn.q_proj"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of one layer, with experts and tied embeddings."""
    names = [f"model.{QUERY}.weight", "model.embed_tokens.weight", "model.layers.0.mlp.experts.gate_up_proj.weight"]
    return _write_model(tmp_path / "model", names)


def _write_model(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    save_file({name: zeros((OUT, HIDDEN), "float32") for name in names}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"hidden_size": HIDDEN}))
    return folder


def _write_adapter(folder: Path, *modules: str) -> dict[str, str]:
    """Write an adapter and return its option of the engine URL."""
    folder.mkdir()
    tensors = {f"base_model.model.{name}.lora_A.weight": zeros((RANK, HIDDEN), "float32") for name in modules}
    tensors |= {f"base_model.model.{name}.lora_B.weight": zeros((OUT, RANK), "float32") for name in modules}
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": RANK}))
    return {"lora.sql": str(folder)}


@pytest.mark.parametrize(
    "module", [f"model.{QUERY}", f"model.{QUERY}.base_layer", "model.layers.0.mlp.experts.3.gate_proj", "lm_head"]
)
def test_adapter_of_the_model_is_taken(model: Path, tmp_path: Path, module: str) -> None:
    assert modules_problem(model, _write_adapter(tmp_path / "adapter", module)) is None


@pytest.mark.parametrize("module", ["model.layers.7.self_attn.q_proj", QUERY, "transformer.h.0.attn.c_attn"])
def test_weights_that_vllm_would_ignore_are_named(model: Path, tmp_path: Path, module: str) -> None:
    problem = modules_problem(model, _write_adapter(tmp_path / "adapter", f"model.{QUERY}", module))
    assert problem is not None
    assert f"modules that the model does not have: {module};" in problem


def test_prefixes_of_a_multimodal_model_are_not_compared(tmp_path: Path) -> None:
    model = _write_model(tmp_path / "model", [f"language_model.model.{QUERY}.weight"])
    (model / "config.json").write_text(json.dumps({"text_config": {"hidden_size": HIDDEN}}))
    assert modules_problem(model, _write_adapter(tmp_path / "a", f"model.language_model.{QUERY}")) is None
    assert modules_problem(model, _write_adapter(tmp_path / "b", "model.language_model.layers.1.self_attn.q_proj")) is not None


def test_a_slot_of_memory_counts_for_each_adapter_and_one_more(model: Path, tmp_path: Path) -> None:
    options = _write_adapter(tmp_path / "adapter", f"model.{QUERY}")
    slot = 2 * RANK * 2 * (OUT + HIDDEN)
    file = (tmp_path / "adapter" / "adapter_model.safetensors").stat().st_size
    assert adapters_size(model, options, 2, "GPU") == 2 * slot
    assert adapters_size(model, options, 2, "CPU") == 2 * slot + file
    assert adapters_size(model, {**options, "max_loras": "5"}, 2, "GPU") == 5 * slot
    assert adapters_size(model, {}, 2, "GPU") == 0
    (model / "model.safetensors").unlink()
    assert adapters_size(model, options, 2, "GPU") == 2 * file


def test_start_is_refused_with_the_names(demo_folder: Path, tmp_path: Path) -> None:
    options = _write_adapter(tmp_path / "adapter", "model.layers.99.self_attn.q_proj")
    setting = f"demo=vllm:///{demo_folder}?lora.sql={options['lora.sql']}"
    with pytest.raises(CannotServe, match=r"LoRA adapter sql .* does not have: model\.layers\.99\.self_attn\.q_proj;"):
        prepare(setting, Progress(io.StringIO()), fit=False, has_gpu=lambda: False)
