"""Import time of dialects: heavy libraries are imported only when a model needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_opening_a_harmony_model_loads_neither_vllm_nor_transformers_nor_django(tmp_path: object) -> None:
    script = (
        "import json, pathlib, sys; folder = pathlib.Path(sys.argv[1]);"
        "(folder / 'config.json').write_text(json.dumps({'model_type': 'gpt_oss'}));"
        "from responses_app.dialects.checkpoint import Checkpoint;"
        "from responses_app.dialects.registry import open_checkpoint;"
        "import responses_app.dialects.chat.dialect;"
        "checkpoint = Checkpoint(str(folder));"
        "opened, _ = open_checkpoint(checkpoint, checkpoint.detect_family(None, None));"
        "assert type(opened).__name__ == 'HarmonyDialect';"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & {'vllm', 'transformers', 'torch', 'django', 'xgrammar'}))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
