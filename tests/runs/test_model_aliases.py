"""Other names of models: exact ones are listed, patterns match, and the response names the model that answered."""

from __future__ import annotations

import orjson
import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.runs.models import ServedModel, parse_aliases, resolve_alias
from tests.support.api.case import HARMONY, HELLO, ApiCase, record_text

SERVED = {name: ServedModel(name, ReplayEngine(), "", {}, dialect=HARMONY) for name in ("a", "b")}


def test_model_name_precedes_alias_and_alias_precedes_pattern() -> None:
    known = parse_aliases("gpt-4o=b a=b gpt-*=a o*=b *=a", SERVED)
    answers = {name: resolve_alias(name, SERVED, known) for name in ("a", "b", "gpt-4o", "gpt-9", "o3", "x")}
    assert {name: one.name for name, one in answers.items() if one} == {
        "a": "a",
        "b": "b",
        "gpt-4o": "b",
        "gpt-9": "a",
        "o3": "b",
        "x": "a",
    }
    assert resolve_alias("x", SERVED, {"gpt-*": "a"}) is None


@pytest.mark.parametrize("text", ["x", "x=", "=a", "x=c"])
def test_an_alias_of_nothing_is_refused_at_the_start(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="a, b"):
        parse_aliases(text, SERVED)


class AliasTest(ApiCase):
    """With a scripted engine."""

    async def test_a_client_may_insist_on_a_name(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            self.hub.aliases = {"gpt-4o": "m", "o*": "m"}
            for name in ("gpt-4o", "o3-mini"):
                with self.subTest(name=name):
                    made = orjson.loads((await self.post(client, model=name)).content)
                    self.assertEqual((made["model"], made["status"]), ("m", "completed"))
                    self.assertEqual(orjson.loads((await client.get(f"/v1/models/{name}")).content)["id"], name)
            listed = orjson.loads((await client.get("/v1/models")).content)["data"]
            self.assertEqual([one["id"] for one in listed], ["m", "gpt-4o"])
            self.refused(await self.post(client, model="gpt-5"), 400, "model_not_found", "model")
