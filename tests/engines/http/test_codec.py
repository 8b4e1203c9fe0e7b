"""HTTP codec of a generation, for every cut of the received bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.engine_interface import Chunk, Constraint, EngineOverloaded, EngineUnavailable, Logprob, RequestRejected
from responses_app.engines.http import codec
from tests.support.engines.generate import cached, make_request, tokens

SCHEMA = Constraint("json", {"type": "object"})


def event(**fields: Any) -> bytes:
    return b"data: " + orjson.dumps({"request_id": "x"} | fields) + b"\n\n"


def token_event(*ids: int, finish: str | None = None, logprobs: Any = None) -> bytes:
    return event(choices=[{"index": 0, "token_ids": list(ids), "finish_reason": finish, "logprobs": logprobs}])


USAGE = event(choices=[], usage={"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}})
STREAM = token_event(1) + token_event(2, 3) + b": still here\n\n" + token_event(4, finish="stop") + USAGE + b"data: [DONE]\n\n"


def parse_stream(*parts: bytes, logprobs: int | None = None, constraint: Constraint | None = None) -> list[Chunk]:
    answer = codec.GenerateStreamParser(make_request(sampling={"logprobs": logprobs}, constraint=constraint))
    chunks = [chunk for piece in parts if (chunk := answer.feed(piece))]
    return [*chunks, answer.last_chunk()]


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_stream_parses_the_same_for_any_cut_of_its_bytes(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = parse_stream(*(STREAM[a:b] for a, b in pairwise(edges)))
    assert tokens(chunks) == [1, 2, 3, 4]
    assert [chunk.finish for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert cached(chunks) == 4


def test_tokens_of_one_read_are_one_chunk() -> None:
    assert parse_stream(STREAM) == [Chunk((1, 2, 3, 4)), Chunk(finish="stop", cached=4, prompt=9)]


def test_stream_parses_with_carriage_returns() -> None:
    assert tokens(parse_stream(STREAM.replace(b"\n", b"\r\n"))) == [1, 2, 3, 4]


def test_alternatives_are_cut_to_the_requested_number() -> None:
    top = [{"token_id": 5, "logprob": -3.0}, {"token_id": 1, "logprob": -0.5}, {"token_id": 2, "logprob": -1.0}]
    content = {"content": [{"token_id": 5, "logprob": -3.0, "rank": 9, "top_logprobs": top}]}
    (chunk, _) = parse_stream(token_event(5, finish="length", logprobs=content), logprobs=2)
    assert chunk.logprobs == (Logprob(5, -3.0, [(1, -0.5), (2, -1.0)]),)


@pytest.mark.parametrize("stream", [b"", token_event(1), token_event(1, finish="stop")[:-1], b"data: [DONE]\n\n"])
def test_broken_stream_raises(stream: bytes) -> None:
    with pytest.raises(EngineUnavailable, match="broke off"):
        parse_stream(stream)


@pytest.mark.parametrize("payload", [b'{"choices":[{"ind', b"<html>", b"[1]", b""])
def test_event_that_is_no_object_is_a_failure_of_the_engine(payload: bytes) -> None:
    with pytest.raises(EngineUnavailable, match="is no JSON object: check that the URL"):
        parse_stream(b"data: " + payload + b"\n\n")


@pytest.mark.parametrize(
    ("code", "before", "constraint", "kind"),
    [
        (400, b"", None, RequestRejected),
        (500, b"", None, EngineUnavailable),
        (500, b"", SCHEMA, RequestRejected),
        (400, token_event(1), None, EngineUnavailable),
        (500, token_event(1), SCHEMA, EngineUnavailable),
        ("odd", b"", None, EngineUnavailable),
    ],
)
def test_request_is_rejected_only_before_the_first_token(code: Any, before: bytes, constraint: Any, kind: type) -> None:
    with pytest.raises(kind, match="oh no"):
        parse_stream(before, event(error={"message": "oh no", "code": code}), constraint=constraint)


def test_error_finish_is_a_failure() -> None:
    with pytest.raises(EngineUnavailable, match="gave up"):
        parse_stream(token_event(1, finish="error"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRejected),
        (422, RequestRejected),
        (401, EngineUnavailable),
        (404, EngineUnavailable),
        (429, EngineOverloaded),
        (503, EngineOverloaded),
    ],
)
def test_refusals_are_classified_by_status(status: int, kind: type) -> None:
    assert type(codec.error_for(status, b"<html>")) is kind
    assert "why" in str(codec.error_for(status, b'{"error": {"message": "why"}}'))


def test_request_is_encoded_for_vllm() -> None:
    png = b"\x89PNG\r\n\x1a\n..."
    request = make_request(
        [1, 2], 7, id="resp_1", sampling={"stop_token_ids": [3], "logprobs": 5}, constraint=SCHEMA, images=[png], priority=2
    )
    body = orjson.loads(codec.encode_body(request, "m", priorities=True))
    assert (body["request_id"], body["model"], body["token_ids"], body["priority"]) == ("resp_1", "m", [1, 2], 2)
    assert body["sampling_params"]["structured_outputs"] == {"json": {"type": "object"}}
    assert (body["sampling_params"]["max_tokens"], body["sampling_params"]["stop_token_ids"]) == (7, [3])
    assert body["sampling_params"]["logprobs"] == 6, "the server counts the chosen token as one"
    assert body["content_parts"][0]["url"].startswith("data:image/png;base64,iVBORw")
    assert body["sampling_params"]["logit_bias"] is None
    biased = orjson.loads(codec.encode_body(make_request(sampling={"bias": {7: -0.5}}), "m", priorities=True))
    assert biased["sampling_params"]["logit_bias"] == {"7": -0.5}
    assert "priority" not in orjson.loads(codec.encode_body(request, "m", priorities=False))


def test_requested_logprobs_stay_below_the_limit_of_the_server() -> None:
    logprobs = [
        orjson.loads(codec.encode_body(make_request(sampling={"logprobs": n}), None, False))["sampling_params"]["logprobs"]
        for n in (None, 0, 1, 20)
    ]
    assert logprobs == [None, 0, 2, 20]


def test_structural_tag_is_sent_as_text() -> None:
    request = make_request(constraint=Constraint("structural_tag", {"type": "structural_tag", "format": {"type": "any_text"}}))
    params = orjson.loads(codec.encode_body(request, None, False))["sampling_params"]
    assert orjson.loads(params["structured_outputs"]["structural_tag"])["format"] == {"type": "any_text"}


def test_values_outside_json_are_refused() -> None:
    with pytest.raises(RequestRejected):
        codec.encode_body(make_request([2**70]), None, False)


def test_session_is_a_header_that_can_be_renamed() -> None:
    request = make_request(id="resp_2", session="resp_1")
    assert codec.headers(request, codec.SESSION_HEADER) == {"X-Request-Id": "resp_2", "X-Session-ID": "resp_1"}
    assert codec.headers(make_request(id="resp_3"), "X-Key") == {"X-Request-Id": "resp_3", "X-Key": "resp_3"}
