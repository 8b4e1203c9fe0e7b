"""The limit that cuts a response, by name in `incomplete_details`."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.test import override_settings

from responses_app.dialects.sampling_defaults import SamplingDefaults
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.engines.replay.tape import Delay, Recording
from responses_app.models import Response
from responses_app.web.response.properties import request_properties
from responses_app.web.responses.parameters import parameters
from tests.support.api.case import HELLO, ApiCase, record_text

LONG = record_text("<|channel|>final<|message|>" + "word " * 200)
WINDOW = 150


class OutputLimitTest(ApiCase):
    """Limits of the output."""

    def setUp(self) -> None:
        self.engine = ReplayEngine(max_model_len=WINDOW)

    async def test_smallest_limit_is_named(self) -> None:
        default, most = "RESPONSES_DEFAULT_OUTPUT_TOKENS", "RESPONSES_MAX_OUTPUT_TOKENS"
        cases: list[tuple[str, dict[str, Any], dict[str, int], dict[str, int]]] = [
            # name of the limit, settings, limits of the key, fields of the request
            ("request", {}, {}, {"max_output_tokens": 16}),
            ("request", {most: {"": 20}}, {"max_output_tokens": 16}, {"max_output_tokens": 16}),
            ("key_maximum", {most: {"": 20}}, {"max_output_tokens": 16}, {}),
            ("key_default", {}, {"default_output_tokens": 16, "max_output_tokens": 20}, {}),
            ("model_default", {default: {"": 16}}, {"default_output_tokens": 20}, {}),
            ("model_maximum", {most: {"m": 16}, default: {"m": 18}}, {"default_output_tokens": 20}, {}),
        ]
        async with self.serving(*[LONG] * len(cases)) as client:
            for name, settings, of_key, fields in cases:
                with self.subTest(name=name, of_key=of_key), override_settings(**settings):
                    await self.limit(**{"default_output_tokens": None, "max_output_tokens": None, **of_key})
                    made = await self.made(client, **fields)
                    details = {"reason": "max_output_tokens", "limit": name, "value": 16}
                    self.assertEqual((made["status"], made["incomplete_details"]), ("incomplete", details))
                    self.assertEqual((made["max_output_tokens"], made["usage"]["output_tokens"]), (16, 16))

    async def test_limit_of_the_model_and_end_of_the_context_are_distinguished(self) -> None:
        context = {"reason": "max_output_tokens", "limit": "context_window", "value": WINDOW}
        of_model = {"reason": "max_output_tokens", "limit": "model_default", "value": 16}
        async with self.serving(*[LONG] * 4) as client:
            for defaults, requested, details in (
                (SamplingDefaults(), None, context),
                (SamplingDefaults(), 1000, context),
                (SamplingDefaults(max_new_tokens=1000), None, context),
                (SamplingDefaults(max_new_tokens=16), None, of_model),
            ):
                with self.subTest(defaults=defaults, requested=requested):
                    self.hub.model("m").defaults = defaults
                    made = await self.made(client, max_output_tokens=requested)
                    self.assertEqual((made["incomplete_details"], made["max_output_tokens"]), (details, requested))
                    self.assertEqual(made["usage"]["total_tokens"] == WINDOW, details is context)

    async def test_limits_of_the_key_are_named_for_a_stored_response_and_its_stream(self) -> None:
        await self.limit(default_output_tokens=16)
        async with self.serving(LONG) as client:
            response = (await self.stream(client))[-1]["response"]
            stored = orjson.loads((await client.get(f"/v1/responses/{response['id']}")).content)
            self.assertEqual(stored["incomplete_details"], response["incomplete_details"])
            self.assertEqual(stored["incomplete_details"]["limit"], "key_default")

    async def test_pages_send_no_number_that_the_client_has_not_sent(self) -> None:
        await self.limit(default_output_tokens=16)
        async with self.serving(LONG, LONG) as client:
            for fields, number, shown in (
                ({}, None, "16, the default of this key"),
                ({"max_output_tokens": 16}, 16, "16"),
            ):
                made = await self.made(client, **fields)
                row = await Response.objects.aget(uid=made["id"])
                again = await sync_to_async(parameters)(row)
                self.assertEqual(again.get("max_output_tokens"), number)
                properties = await sync_to_async(request_properties)(row)
                self.assertIn(("Max output tokens", shown, number is not None), [tuple(one) for one in properties])


class RunningTimeLimitTest(ApiCase):
    """Limits of the running time."""

    @pytest.mark.slow
    async def test_smaller_limit_is_named(self) -> None:
        endless = Recording([*record_text(HELLO).steps[:-1], Delay(600)])
        async with self.serving(endless, endless) as client:
            for name, of_key, of_model in (("key_maximum", 1, 600), ("model_maximum", 600, 1)):
                await self.limit(max_run_seconds=of_key)
                with self.subTest(name=name), override_settings(RESPONSES_MAX_RUN_SECONDS={"m": of_model}):
                    made = await self.made(client)
                    self.assertEqual(made["incomplete_details"], {"reason": "max_run_seconds", "limit": name, "value": 1})
