"""Which model answers: the default one, unknown ones and those of other keys; and that none can be deleted."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from responses_app.access.model_access import MAX_NAMES_SHOWN
from responses_app.dialects.families.detection import Evidence, detect
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import ApiKey
from responses_app.runs import manager
from responses_app.runs.models import ServedModel, check_default
from tests.support.api.case import HARMONY, HELLO, ApiCase, KeyedClient, record_text
from tests.support.api.websocket_case import SocketCase, error


def served(*names: str) -> dict[str, ServedModel]:
    """Models of these names."""
    return {name: ServedModel(name, ReplayEngine(), "", {}, dialect=HARMONY) for name in names}


@pytest.mark.parametrize("name", ["", "a", "gpt", "o3-mini"])
def test_a_default_model_is_served_or_an_alias(name: str) -> None:
    check_default(name, served("a"), {"gpt": "a", "o*": "a"})


def test_another_default_model_is_refused_at_the_start() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"RESPONSES_DEFAULT_MODEL: 'x' must be .*\(a, gpt\)"):
        check_default("x", served("a"), {"gpt": "a"})
    manager.set_current(None)
    with override_settings(RESPONSES_MODELS="", RESPONSES_DEFAULT_MODEL="x"), pytest.raises(ImproperlyConfigured, match="none"):
        manager.current()


class ModelsTest(ApiCase):
    """With a scripted engine."""

    async def call(self, client: Any, path: str, **body: Any) -> Any:
        """POST below /v1, without a model."""
        return await client.post(path, orjson.dumps({"input": "Hi", **body}), content_type="application/json")

    async def test_without_a_default_a_model_must_be_named(self) -> None:
        async with self.serving() as client:
            for path in ("", "/compact", "/input_tokens"):
                answer = await self.call(client, f"/v1/responses{path}")
                self.refused(answer, 400, "missing_required_parameter", "model")

    async def test_models_name_the_tools_and_the_mcp_servers(self) -> None:
        servers = {"docs": {"url": "https://docs.example/mcp", "authorization": "s3cret", "description": "Pages"}}
        async with self.serving() as client:
            with override_settings(RESPONSES_MCP_SERVERS=servers):
                content = (await client.get("/v1/models/m")).content
                model = orjson.loads(content)
                shown = {"server_label": "docs", "connector_id": None, "server_description": "Pages"}
                self.assertEqual((model["tools"][-1], model["mcp_servers"]), ("mcp", [shown]))
                self.assertNotIn(b"s3cret", content)
                with override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"mcp"})):
                    model = orjson.loads((await client.get("/v1/models/m")).content)
                    self.assertEqual(("mcp" in model["tools"], model["mcp_servers"]), (False, []))

    async def test_models_have_facts_for_clients_and_the_form_of_codex(self) -> None:
        async with self.serving() as client:
            listed = orjson.loads((await client.get("/v1/models")).content)
            (model,) = listed["data"]
            facts = {"context_window": 131072, "reasoning_efforts": ["low", "medium", "high"], "input_modalities": ["text"]}
            self.assertEqual({key: model[key] for key in facts}, facts)
            self.assertNotIn("models", listed)
            (codex,) = orjson.loads((await client.get("/v1/models?client_version=0.171.0")).content)["models"]
            self.assertEqual((codex["slug"], codex["context_window"], codex["priority"]), ("m", 131072, 1))
            self.assertEqual(codex["default_reasoning_level"], "medium")

    @override_settings(RESPONSES_DEFAULT_MODEL="gpt")
    async def test_the_default_answers_where_none_is_named(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            self.hub.aliases = {"gpt": "m"}
            for body in ({}, {"model": None}, {"background": True}):
                with self.subTest(body=body):
                    answer = await self.call(client, "/v1/responses", **body)
                    self.assertEqual((answer.status_code, orjson.loads(answer.content)["model"]), (200, "m"), answer.content)
            await self.read(await client.get(f"/v1/responses/{orjson.loads(answer.content)['id']}?stream=true"))
            counted = await self.call(client, "/v1/responses/input_tokens")
            self.assertEqual(counted.status_code, 200, counted.content)
            self.assertEqual((await self.call(client, "/v1/responses/compact")).status_code, 200)
            # Open Responses asks every server to refuse this one.
            strict = await self.call(client, "/openresponses/v1/responses/compact")
            self.refused(strict, 400, "missing_required_parameter", "model")

    @override_settings(RESPONSES_DEFAULT_MODEL="m")
    async def test_the_default_is_asked_of_a_key_that_may_use_it(self) -> None:
        async with self.serving() as client:
            client.secret = (await sync_to_async(ApiKey.make)("few", allowed_models=["x"]))[1]
            self.refused(await self.call(client, "/v1/responses"), 403, "model_not_found", "model", "may not use the model 'm'")

    async def test_an_unknown_model_is_told_which_there_are(self) -> None:
        async with self.serving() as client:
            self.hub.served = {**self.hub.served, **served("b")}
            self.hub.aliases = {"gpt": "m", "o*": "b"}
            message = "The requested model 'x' does not exist. Available models: 'm', 'b', 'gpt'."
            for path in ("", "/compact", "/input_tokens"):
                answer = await self.call(client, f"/v1/responses{path}", model="x")
                self.refused(answer, 400, "model_not_found", "model", message)
            self.refused(
                await client.get("/v1/models/x"), 404, "model_not_found", "model", "Available models: 'm', 'b', 'gpt'."
            )
            few = KeyedClient((await sync_to_async(ApiKey.make)("few", allowed_models=["b"]))[1])
            message = "The requested model 'x' does not exist. Available models: 'b'."
            self.refused(await self.call(few, "/v1/responses", model="x"), 400, "model_not_found", "model", message)
            refused = await self.call(few, "/v1/responses", model="gpt")
            self.refused(refused, 403, "model_not_found", "model", "may not use the model 'gpt'. Available models: 'b'.")
            none = KeyedClient((await sync_to_async(ApiKey.make)("none", allowed_models=["gone"]))[1])
            self.refused(
                await self.call(none, "/v1/responses", model="x"), 400, "model_not_found", "model", "none of the models"
            )

    async def test_many_models_are_told_in_a_short_message(self) -> None:
        async with self.serving() as client:
            self.hub.served = {**self.hub.served, **served(*(f"{n}-{'x' * 500}" for n in range(100)))}
            answer = await self.call(client, "/v1/responses", model="y" * 100_000)
            self.refused(answer, 400, "model_not_found", "model", f" and {101 - MAX_NAMES_SHOWN} more")
            self.assertLess(len(answer.content), 3000)

    async def test_a_model_has_the_family_that_was_detected(self) -> None:
        async with self.serving() as client:
            self.assertIsNone(orjson.loads((await client.get("/v1/models/m")).content)["family"])
            self.hub.served["m"].family = detect(Evidence(model_type="seed_oss", tool_parser="hermes"))
            family = {
                "name": "Seed-OSS",
                "reasoning_parser": "seed_oss",
                "tool_parser": "hermes",
                "chosen_by": "setting and model_type",
                "evidence": ["tool_parser=hermes", "seed_oss"],
                "warnings": [],
                "read_back": {"calls": "not_checked", "reasoning": "not_checked"},
            }
            self.assertEqual(orjson.loads((await client.get("/v1/models/m")).content)["family"], family)
            self.assertEqual(orjson.loads((await client.get("/v1/models")).content)["data"][0]["family"], family)

    async def test_no_model_can_be_deleted(self) -> None:
        async with self.serving() as client:
            self.hub.aliases = {"gpt": "m"}
            for name in ("m", "gpt"):
                self.refused(
                    await client.delete(f"/v1/models/{name}"), 403, None, "model", "that you do not own cannot be deleted"
                )
            self.refused(await client.delete("/v1/models/x"), 404, "model_not_found", "model", "The model 'x' does not exist")
            few = KeyedClient((await sync_to_async(ApiKey.make)("few", allowed_models=["b"]))[1])
            self.refused(await few.delete("/v1/models/m"), 404, "model_not_found", "model")


class ModelsOnSocketsTest(SocketCase):
    """The same on a WebSocket."""

    @override_settings(RESPONSES_DEFAULT_MODEL="m")
    async def test_the_default_answers_where_none_is_named(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            await socket.send(type="response.create", input="Hi")
            self.assertEqual((await socket.receive_response())[-1]["response"]["model"], "m")

    async def test_an_unknown_model_is_told_which_there_are(self) -> None:
        async with self.serving(), self.socket() as socket:
            await socket.send(type="response.create", model="x", input="Hi")
            refused = error((await socket.receive_response())[0])
            self.assertEqual((refused["status"], refused["code"], refused["param"]), (400, "model_not_found", "model"))
            self.assertIn("Available models: 'm'.", refused["message"])
