"""What `cached_tokens` of a real engine tells a project: nothing about the prompts of another."""

from __future__ import annotations

import pytest
from openai import OpenAI

from tests.support.contract_server import Address

pytestmark = pytest.mark.engine
SECRET = "The offer for the northern plant is 41 million. " * 30


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
