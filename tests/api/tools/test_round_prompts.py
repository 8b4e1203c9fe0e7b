"""Prompts of rounds: those that the engine got, with counts that add up to the usage, also when the log is archived."""

from __future__ import annotations

import pytest
from asgiref.sync import sync_to_async

from responses_app.models import Response, RoundPrompt
from responses_app.store.log.archive import archive_log
from responses_app.store.log.rows.round_prompts import load_rounds
from responses_app.web.response.selection.prompt_rounds import counted_rounds, missing_tokens
from tests.support.api.server_tools_case import CODE_TOOL, HarmonyTexts, ServerToolsCase


class RoundPromptTest(HarmonyTexts, ServerToolsCase):
    __test__ = True

    async def rounds_of(self, uid: str, archive: bool) -> tuple[list[list[int]], list[int | None], int]:
        """Return the prompts, their counts, and the tokens of rounds that are not stored."""

        def load() -> tuple[list[list[int]], list[int | None], int]:
            row = Response.objects.get(uid=uid)
            if archive:
                self.assertGreater(archive_log(row.pk), 0)
            stored = load_rounds(row.pk)
            rounds = counted_rounds(row, stored)
            return [list(one.prompt) for one in stored], [one.input_tokens for one in rounds], missing_tokens(row, rounds)

        return await sync_to_async(load)()

    async def test_each_round_has_the_prompt_of_the_engine(self) -> None:
        lines = [
            self.record(self.call("python", code="print(6 * 7 * 1000)")),
            self.record(self.call("python", code="print(2)"), "42000"),
            self.record(self.answer("Done."), "42000", "print(2)"),
        ]
        async with self.serving(*lines) as client:
            made = await self.made(client, tools=[CODE_TOOL])
            sent = [list(request.prompt) for request in self.engine.requests]
            for archive in (False, True):
                with self.subTest(archive=archive):
                    prompts, counts, missing = await self.rounds_of(made["id"], archive)
                    self.assertEqual(prompts, sent)
                    self.assertEqual(counts, [len(prompt) for prompt in sent])
                    self.assertEqual(sum(filter(None, counts)), made["usage"]["input_tokens"])
                    self.assertEqual(missing, 0)
        # Only the tokens behind the common beginning are saved.
        rows = {row.number: row async for row in RoundPrompt.objects.all()}
        self.assertEqual(rows[0].prompt_tokens, b"")
        self.assertLess(len(rows[2].prompt_tokens), 4 * len(sent[2]) / 2)

    @pytest.mark.slow
    async def test_a_single_round_saves_nothing(self) -> None:
        async with self.serving(self.record(self.answer("Done."))) as client:
            made = await self.made(client, tools=[CODE_TOOL])
            prompts, counts, _ = await self.rounds_of(made["id"], archive=True)
        self.assertEqual(counts, [made["usage"]["input_tokens"]])
        self.assertEqual([len(prompt) for prompt in prompts], counts)
        self.assertFalse(await RoundPrompt.objects.aexists())
