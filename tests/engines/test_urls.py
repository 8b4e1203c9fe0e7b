"""Several URLs of a model in a text."""

from __future__ import annotations

import pytest

from responses_app.engines.urls import join_urls, location, split_urls


def test_parameters_of_the_last_url_hold_for_all() -> None:
    assert split_urls("http://a:1,https://:k@b:2/x?model=m&priority=1") == [
        "http://a:1?model=m&priority=1",
        "https://:k@b:2/x?model=m&priority=1",
    ]
    assert split_urls("http://a:1,http://b:2") == ["http://a:1", "http://b:2"]


@pytest.mark.parametrize("url", ["http://a:1", "vllm:///srv/a,b?x=1", "script:///t,1.jsonl", "http://a?tokenizer=/x,y"])
def test_single_url_stays_as_written(url: str) -> None:
    assert split_urls(url) == [url]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://a,vllm:///b", "must be http or https URLs of vLLM servers, not vllm:///b"),
        ("script:///a,script:///b", "must be http or https"),
        ("http://a:1,http://b:1,http://a:1", "http://a:1 is listed twice"),
        ("http://:one@a:1,http://:two@a:1/", "http://a:1 is listed twice"),
        ("http://a?model=m,http://b", "the parameters of http://a stand behind the last URL"),
    ],
)
def test_urls_that_cannot_serve_one_model_are_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        split_urls(text)


@pytest.mark.parametrize(
    "address", ["", "/path", ":8000", "[::1", "gpu:x", "gpu:99999", "gpu:0", "a:1:2", "gpu:8000,http://gpu:x", ":hidden@gpu:x"]
)
def test_address_that_cannot_be_is_refused_without_its_key(address: str) -> None:
    with pytest.raises(ValueError, match=r"must have a host and, behind a colon, a port from 1 to 65535") as refused:
        split_urls(f"http://{address}?model=m")
    assert "hidden" not in str(refused.value)


def test_joined_urls_have_the_parameters_of_all() -> None:
    joined = join_urls(["http://a:1?model=m", "http://b:2?model=m&tokenizer=x", "http://c:3"], start_wait="0")
    assert joined == "http://a:1,http://b:2,http://c:3?model=m&tokenizer=x&start_wait=0"
    with pytest.raises(ValueError, match="model is m and n"):
        join_urls(["http://a?model=m", "http://b?model=n"])


def test_location_has_neither_key_nor_parameters() -> None:
    assert location("http://:secret@gpu:8000/east/?model=m") == "http://gpu:8000/east"
