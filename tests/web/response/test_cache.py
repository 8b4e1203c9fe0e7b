"""Cache page: the first difference to the prompt before, its reason, and the tokens of each round."""

from __future__ import annotations

from typing import Any

from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.store.log.token_log import encode_tokens
from tests.support.web.page_case import PLAIN_REQUEST, WebCase, made, text_of

CACHE = "/responses/resp_2/cache"


class PromptCachePageTest(WebCase):
    """Against the real database, without the model."""

    def stored(self, uid: str, prompt: list[int], row: dict[str, Any] | None = None, **request: Any) -> Response:
        response = made(uid, input_tokens=len(prompt), **{"cached_tokens": 0, **(row or {})})
        dumped = CreateRequest("test", None, "m", (), **request).dump()
        StoredRequest.objects.create(response=response, create_request=dumped, prompt_tokens=encode_tokens(prompt))
        return response

    def pair(self, later: list[int], row: dict[str, Any] | None = None, **request: Any) -> str:
        """Store a response with 64 tokens, and the response that continues it; return the page."""
        first = self.stored("resp_1", list(range(64)))
        first.items.all().delete()
        self.stored("resp_2", later, {"previous_uid": "resp_1", **(row or {})}, **request)
        return text_of(self.page(CACHE))

    def test_a_changed_tool_is_the_reason_and_its_cost_is_in_whole_blocks(self) -> None:
        tool = {"type": "function", "name": "weather"}
        page = self.pair([*range(20), *range(900, 1000)], tools=[tool], instructions="New.")
        self.assertIn("48 tokens computed again: tools changed: weather was added.", page)
        self.assertIn("Further changes: instructions changed.", page)
        self.assertIn("1 120 20 16 0", page)

    def test_a_continued_prompt_loses_nothing(self) -> None:
        page = self.pair(list(range(120)), {"cached_tokens": 64})
        self.assertIn("No tokens lost.", page)
        self.assertIn("1 120 64 64 64", page)

    def test_another_cache_key_separates_equal_prompts(self) -> None:
        page = self.pair(list(range(120)), cache_key="k")
        self.assertIn("64 tokens computed again: prompt_cache_key changed", page)
        self.assertIn("The prompts share 64 tokens, but in separate caches.", page)

    def test_requests_with_the_same_key_are_compared_without_a_chain(self) -> None:
        self.stored("resp_1", list(range(64)), cache_key="k")
        self.stored("resp_other", list(range(64)), cache_key="other")
        self.stored("resp_2", list(range(120)), cache_key="k")
        page = self.page(CACHE)
        self.assertIn("/responses/resp_1/prompt", page)
        self.assertNotIn("was removed", page)
        self.assertNotIn("/responses/resp_other/prompt", page)

    def test_a_response_without_a_chain_is_compared_with_the_most_similar_prompt_of_its_key_and_model(self) -> None:
        self.stored("resp_1", list(range(64)))
        self.stored("resp_other", list(range(8)))
        self.stored("resp_model", list(range(100)), {"model": "other"})
        self.stored("resp_2", [*range(40), *range(500, 580)])
        page = self.page(CACHE)
        self.assertIn("/responses/resp_1/prompt", page)
        self.assertIn("32 tokens computed again", text_of(page))

    def test_any_two_responses_can_be_compared(self) -> None:
        self.stored("resp_1", list(range(64)), {"user": self.operator})
        self.stored("resp_2", list(range(120)))
        self.assertIn("No earlier response in this chain", text_of(self.page(CACHE)))
        self.assertIn("No tokens lost.", text_of(self.page(f"{CACHE}?with=resp_1")))
        self.assertIn("No response with the ID resp_none", text_of(self.page(f"{CACHE}?with=resp_none")))

    def test_prompts_that_are_not_stored_are_named(self) -> None:
        made("resp_1")
        made("resp_2", previous_uid="resp_1")
        self.assertIn("The prompt of this response isn’t stored", text_of(self.page(CACHE)))
        StoredRequest.objects.create(
            response=Response.objects.get(uid="resp_2"), create_request=PLAIN_REQUEST, prompt_tokens=encode_tokens([1])
        )
        self.assertIn("The request or the prompt of that response isn’t stored.", text_of(self.page(CACHE)))
