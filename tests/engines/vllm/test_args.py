"""Context length of models on a CPU."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from responses_app.engines.vllm.args import CPU_MAX_MODEL_LEN, CPU_MAX_SMALL_MODEL_LEN, cpu_context_limit

SMALL = {"num_hidden_layers": 5, "num_attention_heads": 8, "head_dim": 64}
LARGE = {"num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}


@pytest.mark.parametrize(
    ("sizes", "cache_gib", "limit"),
    [
        (SMALL, 1.0, CPU_MAX_SMALL_MODEL_LEN),
        (SMALL, 0.5, CPU_MAX_MODEL_LEN),
        (LARGE, 1.0, CPU_MAX_MODEL_LEN),
        (LARGE, 8.0, CPU_MAX_SMALL_MODEL_LEN),
        ({**SMALL, "head_dim": None}, 1.0, CPU_MAX_MODEL_LEN),
        ({}, 1.0, CPU_MAX_MODEL_LEN),
    ],
)
def test_context_limit_follows_the_size_of_the_cache(sizes: dict[str, int | None], cache_gib: float, limit: int) -> None:
    assert cpu_context_limit(SimpleNamespace(**sizes), cache_gib) == limit
