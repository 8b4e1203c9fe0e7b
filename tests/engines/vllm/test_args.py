"""Context length of models on a CPU."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from responses_app.demo.build import build
from responses_app.engines.vllm.args import (
    CPU_MAX_MODEL_LEN,
    CPU_MAX_SMALL_MODEL_LEN,
    InvalidEngineOption,
    cpu_context_limit,
)
from responses_app.engines.vllm.command_line import EXIT_INVALID, check_model, main, parse_words, read_options

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


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # torch warns at its import.
@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--max-model-len", "4096", "-tp", "2"], {"max_model_len": "4096", "tensor_parallel_size": "2"}),
        (["--enforce-eager", "--no-enable-prefix-caching"], {"enforce_eager": "1", "enable_prefix_caching": "0"}),
        (["--hf-overrides", '{"a": 1}'], {"hf_overrides": '{"a": 1}'}),
        (["--max_num_seqs=8"], {"max_num_seqs": "8"}),
    ],
)
def test_words_become_options_of_the_engine_url(words: list[str], options: dict[str, str]) -> None:
    assert parse_words(words) == options


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # torch warns at its import.
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--max-model-length", "1"], "unrecognized arguments: --max-model-length 1"),
        (["--max-num-seqs", "many"], "argument --max-num-seqs: invalid"),
        (["--dtype", "float7"], "argument --dtype: invalid choice: 'float7'"),
        (["--max-num-seqs"], "argument --max-num-seqs: expected one argument"),
        (["--model", "x"], "use --model of this server"),
        (["--cudagraph-capture-sizes", "1", "2"], "only one value is supported"),
    ],
)
def test_wrong_words_are_refused_with_the_sentence_of_vllm(words: list[str], problem: str) -> None:
    with pytest.raises(InvalidEngineOption, match=problem):
        parse_words(words)


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("demo-chat", tmp_path_factory.mktemp("models"))


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # torch warns at its import.
@pytest.mark.parametrize(
    ("words", "others", "problem"),
    [
        (
            ["--tensor-parallel-size", "7"],
            {},
            r"Total number of attention heads \(8\) must be divisible by tensor parallel size \(7\)",
        ),
        (["--gpu-memory-utilization", "3"], {}, "gpu_memory_utilization: Input should be less than or equal to 1"),
        (["--pipeline-parallel-size", "9"], {}, "Pipeline parallelism is not supported for this model"),
        (["--max-num-seqs", "4"], {"max_model_len": "99999999"}, "User-specified max_model_len .* is greater than"),
    ],
)
def test_values_are_checked_for_the_model(demo_folder: Path, words: list[str], others: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidEngineOption, match=problem):
        check_model(str(demo_folder), others | parse_words(words))


@pytest.mark.engine
def test_values_that_fit_the_model_are_read(demo_folder: Path) -> None:
    options = read_options(["--seed", "7", "--max-num-seqs", "4"], demo_folder, {"max_model_len": "4096"})
    assert options == {"seed": "7", "max_num_seqs": "4"}


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # torch warns at its import.
def test_program_prints_the_sentence_of_vllm_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--no-such-option"]) == EXIT_INVALID
    assert capsys.readouterr().err.splitlines()[-1] == "unrecognized arguments: --no-such-option"


@pytest.mark.parametrize(
    ("code", "sentence"), [(EXIT_INVALID, "^the reason$"), (1, "^vLLM's options could not be read: the reason$")]
)
def test_last_line_of_a_program_that_fails_is_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, sentence: str
) -> None:
    """A program of two lines in place of the one that imports vLLM, which takes seconds."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nprintf 'a warning\\nthe reason\\n' >&2\nexit {code}\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(InvalidEngineOption, match=sentence):
        read_options(["--no-such-option"])
