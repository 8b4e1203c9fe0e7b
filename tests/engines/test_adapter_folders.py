"""Folders of LoRA adapters that vLLM would refuse after the model is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from responses_app.engines.adapters import adapter_options


@pytest.mark.parametrize(
    ("config", "options", "problem"),
    [
        (
            '{"r": 8, "peft_type": "LORA", "use_dora": true}',
            {},
            "has an adapter of the kind DoRA; vLLM takes LoRA adapters alone",
        ),
        ('{"peft_type": "IA3"}', {}, "has an adapter of the kind IA3; vLLM takes LoRA adapters alone"),
        ('{"r": 1024}', {}, "has the rank r=1024; vLLM takes ranks from 1 to 512"),
        ('{"r": 32}', {"max_lora_rank": "16"}, "max_lora_rank=16 is below the rank 32 of an adapter"),
    ],
)
def test_adapters_that_vllm_refuses_are_named(tmp_path: Path, config: str, options: dict[str, str], problem: str) -> None:
    (tmp_path / "adapter_config.json").write_text(config)
    (tmp_path / "adapter_model.safetensors").touch()
    with pytest.raises(ValueError, match=problem):
        adapter_options({"x": str(tmp_path)}, options)
