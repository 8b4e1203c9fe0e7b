"""Sampling defaults: read from generation_config.json, and refused by the name of the file and of the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from responses_app.dialects.sampling_defaults import SamplingDefaults


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, SamplingDefaults()),
        ('{"temperature": 0.6, "top_p": 0.95, "max_new_tokens": 512}', SamplingDefaults(0.6, 0.95, 512)),
        ('{"temperature": 0.6, "do_sample": false}', SamplingDefaults(temperature=0.0)),
        ('{"temperature": null, "top_p": 1}', SamplingDefaults()),
        ('{"temperature": 0}', SamplingDefaults(temperature=0.0)),
        (
            '{"top_k": 20, "min_p": 0.05, "repetition_penalty": 1.05}',
            SamplingDefaults(top_k=20, min_p=0.05, repetition_penalty=1.05),
        ),
        ('{"top_k": -1}', SamplingDefaults()),
        ('{"top_k": 50, "do_sample": false, "repetition_penalty": 1.1}', SamplingDefaults(0.0, repetition_penalty=1.1)),
        ('{"stop_strings": "END", "suppress_tokens": [3, 4]}', SamplingDefaults(stop_strings=("END",), suppress_tokens=(3, 4))),
        ('{"num_beams": 4, "typical_p": 1.0, "bad_words_ids": null}', SamplingDefaults(not_applied=("num_beams",))),
    ],
)
def test_defaults_are_read(tmp_path: Path, content: str | None, expected: SamplingDefaults) -> None:
    if content is not None:
        (tmp_path / "generation_config.json").write_text(content)
    assert SamplingDefaults.read(tmp_path / "generation_config.json") == expected


def test_defaults_are_shown_and_keys_without_effect_are_a_warning() -> None:
    defaults = SamplingDefaults(0.6, 0.95, 512, top_k=20, stop_strings=("END",), not_applied=("num_beams",))
    assert defaults.summary() == (
        'temperature 0.6, top_p 0.95, top_k 20, min_p 0.0, repetition_penalty 1.0, max_output_tokens 512, stop ["END"]'
    )
    assert "generation_config.json has num_beams, which this server does not apply" in (defaults.warning or "")
    assert SamplingDefaults().warning is None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"temperature": "hot"}', "temperature is 'hot', in place of a number from 0 to 100; correct the file, or remove it"),
        ('{"top_p": 7}', "top_p is 7, in place of a number from 0 to 1;"),
        ('{"temperature": NaN}', "temperature is nan, in place"),
        ('{"temperature": true}', "temperature is True, in place"),
        ('{"max_new_tokens": 0}', "max_new_tokens is 0, in place of a number of tokens"),
        ('{"repetition_penalty": 0}', "repetition_penalty is 0, in place of a number from 0.01 to 100"),
        ('{"stop_strings": [3]}', "stop_strings is [3], in place of a list of texts"),
        ('{"suppress_tokens": ["a"]}', "suppress_tokens is ['a'], in place of a list of ids"),
        ("[1]", "it is no JSON object"),
        ("{", "cannot be read: Expecting"),
    ],
)
def test_other_values_are_refused_by_name(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(ValueError, match=r"generation_config\.json") as error:
        SamplingDefaults.read(tmp_path / "generation_config.json")
    assert problem in str(error.value)
