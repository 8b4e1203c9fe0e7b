"""Prompt page: rounds with their own counts, rounds that were not sent, and rounds that are not stored."""

from __future__ import annotations

from responses_app.models import Response, RoundPrompt, StoredRequest
from responses_app.store.log.token_log import encode_tokens
from tests.support.web.page_case import PLAIN_REQUEST, WebCase, item, made, text_of

PROMPT = "/responses/resp_1/prompt"


class PromptTest(WebCase):
    """Against the real database, without the model: tokens are shown as numbers."""

    def stored(self, input_tokens: int | None, first: list[int], *rounds: tuple[int, list[int], int | None]) -> None:
        """Store a response with the prompt `first`, and rounds of shared tokens, other tokens and counted tokens."""
        row = made(input_tokens=input_tokens, cached_tokens=0)
        StoredRequest.objects.create(response=row, create_request=PLAIN_REQUEST, prompt_tokens=encode_tokens(first))
        for number, (shared, tokens, counted) in enumerate(rounds):
            RoundPrompt.objects.create(
                response=row,
                number=number,
                shared_tokens=shared,
                prompt_tokens=encode_tokens(tokens),
                input_tokens=counted,
                cached_tokens=None if counted is None else 0,
            )

    def test_single_round_is_the_exact_prompt(self) -> None:
        self.stored(3, [5, 6, 70000])
        page = text_of(self.page(PROMPT))
        self.assertIn("Exact prompt: 3 tokens.", page)
        self.assertIn("5 6 70000", page)

    def test_rounds_have_their_own_tokens_and_add_up(self) -> None:
        self.stored(7, [1, 2, 3], (3, [], 3), (2, [8, 9], None))
        first, second = text_of(self.page(PROMPT)), text_of(self.page(f"{PROMPT}?round=2"))
        self.assertIn("Prompt of round 1 of 2: 3 tokens. All rounds: 7 input tokens.", first)
        self.assertIn("1 2 3", first)
        self.assertIn("Prompt of round 2 of 2: 4 tokens.", second)
        self.assertIn("1 2 8 9", second)

    def test_a_round_that_only_ran_tools_is_no_round_of_the_page(self) -> None:
        self.stored(7, [1, 2], (2, [], 0), (0, [4, 5, 6, 7], 4), (4, [8], None))
        page = text_of(self.page(PROMPT))
        self.assertIn("Prompt of round 1 of 2: 4 tokens.", page)
        self.assertNotIn("Round 3", page)
        self.assertIn("4 5 6 7 8", text_of(self.page(f"{PROMPT}?round=2")))

    def test_a_prompt_that_was_not_sent_is_said_so(self) -> None:
        self.stored(0, [1, 2], (2, [], 0))
        self.assertIn("not sent to the model", text_of(self.page(PROMPT)))

    def test_tokens_of_images_are_counted_and_named(self) -> None:
        self.stored(20, [1, 2, 3])
        page = text_of(self.page(PROMPT))
        self.assertIn("Exact prompt: 20 tokens. 17 of these are tokens of images", page)

    def test_rounds_that_are_not_stored_are_named(self) -> None:
        self.stored(248, [1, 2, 3])
        item(Response.objects.get(uid="resp_1"), "ci_1", "code_interpreter_call")
        page = text_of(self.page(PROMPT))
        self.assertNotIn("Exact prompt", page)
        self.assertIn("248 input tokens in all: the prompts of other rounds, 245 tokens, aren’t stored", page)

    def test_a_round_beyond_the_last_is_the_last(self) -> None:
        self.stored(7, [1, 2, 3], (3, [], 3), (2, [8, 9], None))
        self.assertIn("round 2 of 2", text_of(self.page(f"{PROMPT}?round=99")))
