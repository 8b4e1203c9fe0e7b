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
    ],
)
def test_defaults_are_read(tmp_path: Path, content: str | None, expected: SamplingDefaults) -> None:
    if content is not None:
        (tmp_path / "generation_config.json").write_text(content)
    assert SamplingDefaults.read(tmp_path) == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"temperature": "hot"}', "temperature is 'hot', in place of a number from 0 to 100; correct the file, or remove it"),
        ('{"top_p": 7}', "top_p is 7, in place of a number from 0 to 1;"),
        ('{"temperature": NaN}', "temperature is nan, in place"),
        ('{"temperature": true}', "temperature is True, in place"),
        ('{"max_new_tokens": 0}', "max_new_tokens is 0, in place of a number of tokens"),
        ("[1]", "it is no JSON object"),
        ("{", "cannot be read: Expecting"),
    ],
)
def test_other_values_are_refused_by_name(tmp_path: Path, content: str, problem: str) -> None:
    (tmp_path / "generation_config.json").write_text(content)
    with pytest.raises(ValueError, match=r"generation_config\.json") as error:
        SamplingDefaults.read(tmp_path)
    assert problem in str(error.value)
