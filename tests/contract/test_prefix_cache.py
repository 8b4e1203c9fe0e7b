"""`cached_tokens` of a real engine: nothing about the prompts of another project, and most of a prompt at the limit of its length."""

from __future__ import annotations

from typing import Any

import pytest
from openai import OpenAI

from tests.support.contract_server import Address

pytestmark = pytest.mark.engine
SECRET = "The offer for the northern plant is 41 million. " * 30
MESSAGE = "The parcel of order {number} has left the harbour, and the clerk wrote its weight into the book. " * 4
# A limit of the items that can be left out, in place of a full context, and steps of 650 tokens.
LIMIT = 4000
TRUNCATION = {"type": "retention_ratio", "retention_ratio": 0.98, "token_limits": {"post_instructions": LIMIT}}


def cached(client: OpenAI, text: str) -> int:
    made = client.responses.create(model="demo-chat", input=text, max_output_tokens=16, temperature=0)
    assert made.usage is not None
    return made.usage.input_tokens_details.cached_tokens


def test_a_project_does_not_learn_what_another_one_has_asked(server: Address) -> None:
    mine = OpenAI(base_url=server.base, api_key=server.key)
    other = OpenAI(base_url=server.base, api_key=server.key_of("other"))
    cached(mine, SECRET)
    assert cached(mine, SECRET) >= 128, "the engine has a prefix cache"
    head = cached(other, "Something else entirely")
    assert cached(other, SECRET) <= max(head, 64)
    assert cached(other, SECRET) >= 128


def test_most_turns_of_a_conversation_at_its_limit_are_in_the_prefix_cache(client: OpenAI) -> None:
    body: dict[str, Any] = {"model": "demo-chat", "max_output_tokens": 16, "temperature": 0}
    body["extra_body"] = {"truncation": TRUNCATION}
    first: list[Any] = [{"role": "user", "content": MESSAGE.format(number=number)} for number in range(60)]
    made = client.responses.create(input=first, **body)
    shares = []
    for number in range(10):
        made = client.responses.create(input=MESSAGE.format(number=60 + number), previous_response_id=made.id, **body)
        assert made.usage is not None
        assert LIMIT / 2 < made.usage.input_tokens < LIMIT + 200
        shares.append(made.usage.input_tokens_details.cached_tokens / made.usage.input_tokens)
    assert sum(share >= 0.85 for share in shares) >= 8, shares
    assert min(shares) < 0.85, "the conversation was never shortened"
