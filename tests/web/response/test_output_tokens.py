"""Tokens of a selected output item: behind the prompt of the round, if no later prompt has the item."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import TestCase

from responses_app.models import Response, RoundPrompt, StoredRequest
from responses_app.store.log.token_log import encode_tokens
from responses_app.web.response.selection.prompt_span import PromptSpan
from responses_app.web.response.selection.selected import selected_item
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.web.page_case import PLAIN_REQUEST


class SelectedTokensTest(TestCase):
    """A log with 8 deltas of reasoning and 32 of text."""

    def stored(self, **fields: Any) -> tuple[Response, list[str]]:
        frames = log_frames(40)
        values: dict[str, Any] = {"input_tokens": 5, "output_tokens": 40, "reasoning_tokens": 10, **fields}
        row = stored_response(frames, **values)
        StoredRequest.objects.create(response=row, create_request=PLAIN_REQUEST, prompt_tokens=encode_tokens([1, 2, 3, 4, 5]))
        added = [orjson.loads(frame.data)["item"]["id"] for frame in frames if frame.type == "response.output_item.added"]
        return row, added

    def tokens(self, row: Response, uid: str) -> PromptSpan | None:
        selected = selected_item(row, uid)
        assert selected
        return selected.tokens

    def test_usage_tells_reasoning_and_text_apart(self) -> None:
        row, (reasoning, message) = self.stored()
        self.assertEqual(self.tokens(row, reasoning), PromptSpan(1, 5, 14, is_output=True))
        self.assertEqual(self.tokens(row, message), PromptSpan(1, 15, 44, is_output=True))

    def test_items_of_a_later_round_are_counted_by_deltas(self) -> None:
        row, (reasoning, message) = self.stored(input_tokens=12)
        for number, (shared, counted) in enumerate([(5, 5), (5, None)]):
            RoundPrompt.objects.create(
                response=row,
                number=number,
                shared_tokens=shared,
                prompt_tokens=encode_tokens([6, 7][: 2 * number]),
                input_tokens=counted,
            )
        # The log has no tool, so both items are of the first round.
        self.assertEqual(self.tokens(row, reasoning), PromptSpan(1, 5, 12, is_output=True, is_exact=False))
        self.assertEqual(self.tokens(row, message), PromptSpan(1, 13, 44, is_output=True, is_exact=False))

    def test_item_without_a_stored_prompt_has_no_tokens(self) -> None:
        row, (reasoning, _) = self.stored()
        StoredRequest.objects.all().delete()
        self.assertIsNone(self.tokens(row, reasoning))
