"""Memory of models by their config.json, with the published figures of known models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from responses_app.server.model_files.memory import Machine, _cgroup_free, need
from responses_app.server.model_files.sizes import GIB

QWEN3 = {"num_hidden_layers": 28, "num_key_value_heads": 8, "num_attention_heads": 16, "head_dim": 128,
         "max_position_embeddings": 40960, "dtype": "bfloat16"}  # fmt: skip
GEMMA3 = {"num_hidden_layers": 6, "num_key_value_heads": 4, "num_attention_heads": 8, "head_dim": 256, "sliding_window": 512,
          "max_position_embeddings": 32768, "layer_types": ["sliding_attention"] * 5 + ["full_attention"]}  # fmt: skip
DEEPSEEK = {"num_hidden_layers": 27, "kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_attention_heads": 16,
            "max_position_embeddings": 163840}  # fmt: skip
HYBRID = {"num_hidden_layers": 4, "num_key_value_heads": 2, "num_attention_heads": 16, "head_dim": 256,
          "max_position_embeddings": 8192, "layer_types": ["linear_attention"] * 3 + ["full_attention"]}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "context", "cache"),
    [
        (QWEN3, 8192, 8192 * 114_688),
        ({"text_config": QWEN3}, 8192, 8192 * 114_688),
        (GEMMA3, 32768, 32768 * 4096 + 512 * 5 * 4096),
        (DEEPSEEK, 8192, 8192 * 27 * 576 * 2),
        (HYBRID, 8192, 8192 * 2048),
    ],
)
def test_cache_counts_the_layers_by_their_kind(config: dict[str, Any], context: int, cache: int) -> None:
    computed = need(config, GIB, {"max_model_len": str(context)}, "CPU")
    assert computed.attention.size(context) == cache


@pytest.mark.parametrize(
    ("config", "options", "weights"),
    [
        ({"dtype": "bfloat16"}, {}, 8),
        ({"torch_dtype": "float32"}, {}, 4),
        ({"dtype": "bfloat16"}, {"dtype": "float32"}, 16),
        ({"dtype": "float32", "quantization_config": {}}, {}, 8),
        ({"dtype": "bfloat16"}, {"tensor_parallel_size": "2"}, 4),
    ],
)
def test_weights_count_in_the_type_that_is_loaded(config: dict[str, Any], options: dict[str, str], weights: int) -> None:
    assert need({**QWEN3, "dtype": "", **config}, 8 * GIB, options, "CPU").weights == weights * GIB


@pytest.mark.parametrize(
    ("kind", "free", "largest"), [("CPU", 3.4, 0), ("CPU", 3.6, 9216), ("CPU", 4.6, 18688), ("GPU", 3, 9216), ("GPU", 2.01, 0)]
)
def test_largest_context_fits_beside_the_weights(kind: str, free: float, largest: int) -> None:
    computed = need({**QWEN3, "dtype": "bfloat16"}, GIB, {"max_model_len": "40960"}, kind)
    assert computed.largest_context(Machine(kind, int(free * GIB))) == largest
    assert computed.largest_context(Machine(kind, 100 * GIB)) == 40960


@pytest.mark.parametrize(("text", "context"), [("4096", 4096), ("32k", 32000), ("32K", 32768), ("auto", 8192)])
def test_context_of_the_engine_url_replaces_the_limit(text: str, context: int) -> None:
    assert need(QWEN3, GIB, {"max_model_len": text}, "CPU").context == context


def test_memory_limit_of_a_container_counts(tmp_path: Path) -> None:
    assert _cgroup_free(tmp_path) > 2**60
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 50\n")
    assert _cgroup_free(tmp_path) == 350
    (tmp_path / "memory.max").write_text("max\n")
    assert _cgroup_free(tmp_path) > 2**60
