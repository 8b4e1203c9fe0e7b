"""Prompts that do not fit: refused, or told without their oldest items."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from responses_app.models import Item
from responses_app.runs.prepare.length.truncation import droppable
from tests.support.api.case import ENCODING, HELLO, TOOL, WEATHER, ApiCase, record_text

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"]


def long(word: str) -> str:
    """Return a text of a hundred tokens and more, with a recognisable mark."""
    return f"{word} " * 100


class TruncationTest(ApiCase):
    """With a scripted engine whose context window is small."""

    def words_of_prompt(self) -> list[str]:
        """The words of the last prompt."""
        prompt = ENCODING.decode(list(self.engine.requests[-1].prompt))
        return [word for word in WORDS if long(word).strip() in prompt]

    async def test_the_oldest_items_are_left_out_until_it_fits_and_stay_stored(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            self.engine._max_model_len = 800
            first = [{"role": "user", "content": long(word)} for word in WORDS[:3]]
            made = await self.made(client, input=first, store=True)
            self.assertEqual(self.words_of_prompt(), WORDS[:3])
            more = [{"role": "system", "content": long(WORDS[3])}, *({"role": "user", "content": long(w)} for w in WORDS[4:7])]
            body = {"input": more, "previous_response_id": made["id"]}
            self.refused(await self.post(client, **body), 400, "context_length_exceeded", "input")
            whole = orjson.dumps({"model": "m", "truncation": "auto", **body})
            counted = await client.post("/v1/responses/input_tokens", whole, content_type="application/json")
            second = await self.made(client, **body, truncation="auto")
            self.assertEqual(second["truncation"], "auto")
            self.assertEqual(self.words_of_prompt(), [WORDS[3], *WORDS[4:7]][-4:])
            self.assertEqual(orjson.loads(counted.content)["input_tokens"], second["usage"]["input_tokens"])
            self.assertLessEqual(second["usage"]["input_tokens"], 600)
            self.assertEqual(await Item.objects.acount(), 3 + 1 + 4 + 1)

    async def test_retention_ratio_drops_items_and_is_echoed(self) -> None:
        ratio = {"type": "retention_ratio", "retention_ratio": 0.5}
        async with self.serving(record_text(HELLO)) as client:
            self.engine._max_model_len = 1000
            made = await self.made(client, input=[{"role": "user", "content": long(word)} for word in WORDS], truncation=ratio)
            self.assertEqual(made["truncation"], ratio)
            self.assertEqual(self.words_of_prompt(), WORDS[-4:])

    async def test_wrong_truncation_is_refused(self) -> None:
        ratio = {"type": "retention_ratio", "retention_ratio": 0.5}
        cases: dict[str, list[Any]] = {
            "truncation": ["never", 3, [], ""],
            "truncation.type": [{"type": "x"}],
            "truncation.retention_ratio": [{**ratio, "retention_ratio": 1.5}, {"type": "retention_ratio"}],
            "truncation.token_limits.post_instructions": [{**ratio, "token_limits": {"post_instructions": 0}}],
            "truncation.more": [{**ratio, "more": 1}],
        }
        async with self.serving() as client:
            for param, values in cases.items():
                for value in values:
                    with self.subTest(value=value):
                        refused = await self.post(client, truncation=value)
                        self.assertEqual((refused.status_code, refused.json()["error"]["param"]), (400, param))

    async def test_a_call_goes_with_its_output(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO)) as client:
            self.engine._max_model_len = 520
            made = await self.made(client, input=long(WORDS[0]), tools=[TOOL])
            call = made["output"][-1]["call_id"]
            unanswered_call = [
                {"type": "function_call_output", "call_id": call, "output": long(WORDS[1])},
                {"role": "assistant", "content": long(WORDS[2])},
                {"role": "user", "content": long(WORDS[3])},
            ]
            await self.made(
                client,
                input=unanswered_call,
                tools=[TOOL],
                previous_response_id=made["id"],
                truncation="auto",
                max_output_tokens=200,
            )
            self.assertEqual(self.words_of_prompt(), WORDS[2:4])
            self.assertNotIn("get_weather <|constrain|>", ENCODING.decode(list(self.engine.requests[-1].prompt)))

    async def test_required_items_that_do_not_fit_are_refused(self) -> None:
        async with self.serving() as client:
            self.engine._max_model_len = 300
            for body in ({"input": long("alpha") * 3}, {"input": "x", "instructions": long("alpha") * 3}):
                refused = await self.post(client, truncation="auto", **body)
                self.refused(refused, 400, "context_length_exceeded", "input")


KINDS = st.sampled_from(["user", "assistant", "system", "developer", "call", "output", "reasoning"])


def items(kinds: list[str]) -> list[dict[str, Any]]:
    """Items of these kinds; an output answers the oldest call that has none."""
    out: list[dict[str, Any]] = []
    open_calls: list[str] = []
    for place, kind in enumerate(kinds):
        if kind == "reasoning":
            out.append({"type": "reasoning"})
        elif kind == "output" and open_calls:
            out.append({"type": "function_call_output", "call_id": open_calls.pop(0)})
        elif kind in ("call", "output"):
            open_calls.append(str(place))
            out.append({"type": "function_call", "call_id": str(place)})
        else:
            out.append({"type": "message", "role": kind})
    return out


@given(st.lists(KINDS, min_size=1, max_size=20))
def test_pairs_are_never_parted_and_what_must_stay_stays(kinds: list[str]) -> None:
    whole = items(kinds)
    units = droppable(whole)
    places = [place for unit in units for place in unit]
    assert len(places) == len(set(places))
    users = [place for place, item in enumerate(whole) if item.get("role") == "user"]
    assert not {len(whole) - 1, *users[-1:]} & set(places)
    assert all(whole[place].get("role") not in ("system", "developer") for place in places)
    for count in range(len(units) + 1):
        gone = {place for unit in units[:count] for place in unit}
        left = [item for place, item in enumerate(whole) if place not in gone]
        remaining = {item["call_id"] for item in left if item["type"] == "function_call"}
        answers = {item["call_id"] for item in left if item["type"] == "function_call_output"}
        assert answers <= remaining
        dropped = {item["call_id"] for place, item in enumerate(whole) if place in gone and item["type"] == "function_call"}
        assert not dropped & remaining
