"""Images in a request: told to a model that sees, in their place, counted, kept, and refused by their path."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import Any
from unittest.mock import AsyncMock, patch

import orjson
import PIL.Image
import pytest

from responses_app.engine_interface import EngineUnavailable, RequestRejected
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.images import decode_pool
from responses_app.models import Conversation, Event, Image, Item, Response
from tests.support.api.case import HELLO, TOOL, ApiCase, record_text
from tests.support.api.image_case import BLUE, IMAGE_TOKENS, RED, SeeingCase, answered, data_url, encode, part, png, user
from tests.support.images.expensive_images import progressive, segmented
from tests.support.images.image_server import ImageServer, run_image_server
from tests.support.waiting import eventually


def size(picture: bytes) -> tuple[int, int]:
    """Width and height."""
    with PIL.Image.open(BytesIO(picture)) as image:
        return image.size


FUNCTION = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}"}


async def rows() -> int:
    return await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount()


async def refusing(prompt: Sequence[int], images: Sequence[bytes]) -> int:
    """Count the tokens of a prompt. Raises RequestRejected for more than 500."""
    length = len(prompt) + len(images) * (IMAGE_TOKENS - 1)
    if length > 500:
        raise RequestRejected("too long")
    return length


class ImagePromptTest(SeeingCase):
    """Prompts with images, as the engine gets them."""

    async def test_an_image_stands_where_it_was_sent_and_its_bytes_go_along(self) -> None:
        async with self.serving(answered()) as client:
            made = await self.made(client, input=[user("What is", part(data_url(BLUE)), "and", part(), "this?")])
        self.assertEqual(self.prompt, "<|start|>user:What is<image>and<image>this?<eos>\n<|start|>assistant:")
        self.assertEqual(self.shown, [BLUE, RED])
        self.assertEqual(made["output"][0]["content"][0]["text"], "I see.")

    async def test_usage_counts_the_tokens_of_the_image_and_so_does_input_tokens(self) -> None:
        body = {"model": "m", "input": [user("Look:", part())]}
        async with self.serving(answered(), answered()) as client:
            counted = await client.post("/v1/responses/input_tokens", orjson.dumps(body), content_type="application/json")
            made = await self.made(client, **body)
            events = await self.stream(client, **body)
        length = len(encode(self.prompt)) + IMAGE_TOKENS - 1
        self.assertEqual(made["usage"]["input_tokens"], length)
        self.assertEqual(events[-1]["response"]["usage"]["input_tokens"], length)
        self.assertEqual(orjson.loads(counted.content)["input_tokens"], length)

    async def test_every_format_is_taken_and_so_is_every_detail(self) -> None:
        for kind, detail in (("PNG", "low"), ("JPEG", "high"), ("WEBP", "auto"), ("GIF", "original")):
            with self.subTest(kind=kind):
                picture = png(kind=kind)
                async with self.serving(answered()) as client:
                    await self.made(client, input=[user(part(data_url(picture, f"image/{kind.lower()}"), detail=detail))])
                self.assertEqual(self.shown, [picture])

    async def test_an_image_of_low_detail_is_told_small_and_kept_whole(self) -> None:
        wide = png("red", (2048, 1024))
        item = user(
            part(data_url(wide), detail="low"), part(data_url(wide)), part(data_url(png("red", (512, 9))), detail="low")
        )
        async with self.serving(answered()) as client:
            made = await self.made(client, input=[item])
            query = "include=message.input_image.image_url"
            listed = orjson.loads((await client.get(f"/v1/responses/{made['id']}/input_items?{query}")).content)["data"]
        self.assertEqual([size(one) for one in self.shown], [(512, 256), (2048, 1024), (512, 9)])
        self.assertEqual([one["detail"] for one in listed[0]["content"]], ["low", "auto", "low"])
        self.assertEqual(listed[0]["content"][0]["image_url"], data_url(wide))

    async def test_a_tool_may_return_images(self) -> None:
        parts = [{"type": "input_text", "text": "Here:"}, part()]
        for call, kind in (
            (FUNCTION, "function_call_output"),
            ({**FUNCTION, "type": "custom_tool_call", "input": "x"}, "custom_tool_call_output"),
        ):
            call = {key: value for key, value in call.items() if key != "arguments" or call["type"] == "function_call"}
            with self.subTest(kind=kind):
                async with self.serving(answered()) as client:
                    output = {"type": kind, "call_id": "c1", "output": parts}
                    await self.made(client, input=[user("Draw."), call, output], tools=[TOOL])
                self.assertIn("<|start|>tool:Here:<image><eos>", self.prompt)
                self.assertEqual(self.shown, [RED])

    async def test_the_words_of_a_user_are_no_placeholder(self) -> None:
        async with self.serving(answered()) as client:
            await self.made(client, input=[user("<image>", part())])
        placeholder = encode("<image>")[0]
        self.assertEqual(list(self.engine.requests[-1].prompt).count(placeholder), 1)
        self.assertEqual(self.shown, [RED])

    async def test_a_later_turn_is_shown_the_images_of_the_chain_again(self) -> None:
        async with self.serving(answered(), answered(), answered()) as client:
            first = await self.made(client, input=[user("One:", part())])
            second = await self.made(client, input=[user("Two:", part(data_url(BLUE)))], previous_response_id=first["id"])
            await self.made(client, input="Which was first?", previous_response_id=second["id"])
        self.assertEqual(self.shown, [RED, BLUE])

    async def test_an_image_of_a_stored_item_is_told_by_reference(self) -> None:
        async with self.serving(answered(), answered()) as client:
            await self.made(client, input=[{"id": "msg_1", **user(part())}])
            await self.made(client, input=[{"type": "item_reference", "id": "msg_1"}])
        self.assertEqual(self.shown, [RED])

    async def test_a_conversation_holds_images(self) -> None:
        async with self.serving(answered()) as client:
            conversation = await client.post(
                "/v1/conversations", orjson.dumps({"items": [user(part())]}), content_type="application/json"
            )
            await self.made(client, conversation=orjson.loads(conversation.content)["id"], input="And?")
        self.assertEqual(self.shown, [RED])

    async def test_truncated_messages_drop_their_images(self) -> None:
        many = [user(f"{name} " * 50, part(data_url(png(name)))) for name in ("red", "green", "blue")]
        async with self.serving(answered()) as client:
            self.engine._max_model_len = 500
            self.refused(await self.post(client, input=many), 400, "context_length_exceeded", "input")
            await self.made(client, input=many, truncation="auto", max_output_tokens=16)
        self.assertEqual(self.shown, [png("blue")])

    async def test_an_engine_that_measures_by_generating_is_asked_only_where_it_matters(self) -> None:
        async with self.serving(answered(), answered()) as client:
            self.engine._max_model_len = 500
            with (
                patch.object(ReplayEngine, "counts_cheaply", False),
                patch.object(ReplayEngine, "count_tokens", AsyncMock(side_effect=refusing)) as measure,
            ):
                made = await self.made(client, input=[user("Look:", part())])
                self.assertEqual(measure.await_count, 0)
                self.assertEqual(made["usage"]["input_tokens"], len(encode(self.prompt)) + IMAGE_TOKENS - 1)
                body = orjson.dumps({"model": "m", "input": [user("Look:", part())]})
                counted = await client.post("/v1/responses/input_tokens", body, content_type="application/json")
                self.assertEqual(orjson.loads(counted.content)["input_tokens"], made["usage"]["input_tokens"])
                self.assertEqual(measure.await_count, 1)
                many = [user(f"{name} " * 50, part(data_url(png(name)))) for name in ("red", "green", "blue")]
                await self.made(client, input=many, truncation="auto", max_output_tokens=16)
                self.assertEqual(self.shown, [png("blue")])

    async def test_a_compaction_is_made_of_what_is_seen(self) -> None:
        async with self.serving(answered("A red picture.")) as client:
            body = {"model": "m", "input": [user("Look:", part())]}
            response = await client.post("/v1/responses/compact", orjson.dumps(body), content_type="application/json")
        self.assertEqual(response.status_code, 200, response.content)
        self.assertEqual(self.shown, [RED])
        output = orjson.loads(response.content)["output"]
        self.assertEqual(output[0]["content"][1], {"type": "input_image", "detail": "auto", "image_url": data_url(RED)})

    async def test_a_long_context_with_images_ends_with_a_compaction(self) -> None:
        async with self.serving(answered(), answered("A red picture.")) as client:
            made = await self.made(
                client,
                input=[user("Look:" * 250, part())],
                context_management=[{"type": "compaction", "compact_threshold": 1000}],
            )
        self.assertEqual(made["output"][-1]["type"], "compaction")
        self.assertEqual(self.shown, [RED])


def bad_parts() -> list[tuple[Any, str, str, str]]:
    """Return parts that are refused. The largest picture takes a second."""
    return [
        # part, code, where behind the part, words
        ({"type": "input_image"}, "missing_required_parameter", ".image_url", "Missing"),
        ({"type": "input_image", "image_url": ""}, "missing_required_parameter", ".image_url", "Missing"),
        (part(file_id="file_1"), "unsupported_parameter", ".file_id", "alone"),
        ({"type": "input_image", "file_id": "file_1"}, "file_not_found", ".file_id", "No such File"),
        ({"type": "input_image", "file_id": "../x"}, "file_not_found", ".file_id", "No such File"),
        (part(detail="huge"), "invalid_value", ".detail", "'low'"),
        (part(size=5), "unknown_parameter", ".size", ""),
        ({"type": "input_image", "image_url": {"url": "x"}}, "invalid_type", ".image_url", "a string"),
        (part("data:image/png;base64,!!!!"), "invalid_image_url", ".image_url", "invalid base64"),
        (part("data:image/png;base64,QUJ"), "invalid_image_url", ".image_url", "invalid base64"),
        (part("data:image/png,abc"), "invalid_image_url", ".image_url", "data:image/png;base64"),
        (part("data:"), "invalid_image_url", ".image_url", "data:image/png;base64"),
        (part("data:text/plain;base64,QUJD"), "unsupported_image_media_type", ".image_url", "'text/plain'"),
        (part("data:image/svg+xml;base64,QUJD"), "unsupported_image_media_type", ".image_url", "'image/png'"),
        (part("data:image/png;base64,"), "empty_image_file", ".image_url", "empty"),
        (part("data:image/png;base64,QUJD"), "invalid_image_format", ".image_url", "'image/webp'"),
        (part(data_url(png(kind="BMP"))), "invalid_image_format", ".image_url", "no image"),
        (part(data_url(RED[:45])), "image_parse_error", ".image_url", "decoded"),
        (part(data_url(png(size=(8000, 8000)))), "image_too_large", ".image_url", "8000 x 8000"),
        (part("data:image/png;base64," + "A" * 20_971_520), "string_above_max_length", ".image_url", "20971520"),
        (part("http://example.com/a.png"), "invalid_image_url", ".image_url", "https URLs only"),
        (part("ftp://example.com/a.png"), "invalid_image_url", ".image_url", "https"),
        (part("file:///etc/passwd"), "invalid_image_url", ".image_url", "https"),
        (part("https://user:secret@example.com/a.png"), "invalid_image_url", ".image_url", "password"),
        (part("https://"), "invalid_image_url", ".image_url", "https"),
        (part("x"), "invalid_image_url", ".image_url", "https"),
        (part("https://[::1/"), "invalid_image_url", ".image_url", "https"),
        (part("https://127.0.0.1/a.png"), "invalid_image_url", ".image_url", "public internet"),
        (part("https://0x7f.1/a.png"), "invalid_image_url", ".image_url", "public internet"),
        (part("https://[::ffff:10.0.0.1]/a.png"), "invalid_image_url", ".image_url", "public internet"),
        (part("https://localhost:8000/v1/models"), "invalid_image_url", ".image_url", "public internet"),
        (part("https://169.254.169.254/latest/meta-data"), "invalid_image_url", ".image_url", "public internet"),
    ]


class RefusedTest(SeeingCase):
    """Refused images: 400 with the path of the image, and nothing is stored."""

    @pytest.mark.slow
    async def test_invalid_image_is_refused_by_its_path_also_as_a_stream(self) -> None:
        async with self.serving() as client:
            for bad, code, where, words in bad_parts():
                for stream in (False, True):
                    with self.subTest(bad=str(bad)[:100], stream=stream):
                        response = await self.post(client, input=[user("?"), user("Look:", bad)], stream=stream)
                        self.refused(response, 400, code, f"input[1].content[1]{where}", words)
                        self.assertEqual(await rows(), 0)

    async def test_a_picture_that_takes_too_long_to_decode_is_refused_by_its_path(self) -> None:
        async with self.serving() as client:
            bad = part(data_url(progressive(1000), "image/jpeg"))
            response = await self.post(client, input=[user("Look:", bad)])
            self.refused(response, 400, "image_too_large", "input[0].content[1].image_url", "1,000,000,000 pixels")
            body = orjson.dumps({"items": [user(bad)]})
            response = await client.post("/v1/conversations", body, content_type="application/json")
            self.refused(response, 400, "image_too_large", "items[0].content[0].image_url", "1,000,000,000 pixels")

    async def test_the_number_of_images_has_a_limit(self) -> None:
        async with self.serving() as client:
            with patch("responses_app.runs.prepare.media.MAX_IMAGES", 2):
                many = [part(data_url(png(size=(3, n)))) for n in range(1, 4)]
                self.refused(
                    await self.post(client, input=[user(*many)]), 400, "array_above_max_length", "input", "at most 2 images"
                )

    async def test_a_client_that_leaves_takes_its_pictures_along(self) -> None:
        async with self.serving(answered()) as client:
            slow = [part(data_url(segmented(3_500_000) + bytes([n]), "image/jpeg")) for n in range(2)]
            request = asyncio.create_task(self.post(client, input=[user(*slow)]))
            queue = decode_pool._pool._queue
            await eventually(lambda: len(queue) == 1)
            request.cancel()
            await asyncio.wait({request})
            await eventually(lambda: len(queue) == 0 and not queue._running)
            await self.made(client, input=[user(part(data_url(png(size=(5, 7)))))])

    async def test_an_image_of_an_output_is_refused_by_its_path(self) -> None:
        async with self.serving() as client:
            output = {"type": "function_call_output", "call_id": "c1", "output": [part("data:image/png;base64,!")]}
            response = await self.post(client, input=[user("Draw."), FUNCTION, output])
            self.refused(response, 400, "invalid_image_url", "input[2].output[0].image_url")

    async def test_rules_have_no_images(self) -> None:
        async with self.serving() as client:
            for role in ("system", "developer"):
                response = await self.post(client, input=[{**user(part()), "role": role}])
                self.refused(response, 400, "unsupported_value", "input[0].content[0]", "messages of the user")
            response = await self.post(client, input=[{**user(part()), "role": "assistant"}])
            self.refused(response, 400, "invalid_value", "input[0].content[0].type", "'output_text'")

    async def test_an_image_that_is_added_to_a_conversation_is_looked_at_too(self) -> None:
        async with self.serving() as client:
            body = orjson.dumps({"items": [user("x"), user(part("data:image/png;base64,!"))]})
            response = await client.post("/v1/conversations", body, content_type="application/json")
            self.refused(response, 400, "invalid_image_url", "items[1].content[0].image_url")
            self.assertEqual(await Conversation.objects.acount(), 0)

    async def test_an_engine_that_is_away_or_does_not_take_them_is_told_apart(self) -> None:
        async with self.serving() as client:
            for error, status, code, param in (
                (EngineUnavailable("gone"), 503, "server_error", None),
                (RequestRejected("too wide"), 400, "invalid_image", "input"),
            ):
                with self.subTest(error=error):
                    with patch.object(ReplayEngine, "count_tokens", side_effect=error):
                        self.refused(await self.post(client, input=[user(part())]), status, code, param)
                    self.assertEqual(await rows(), 0)

    async def test_all_images_together_have_a_limit(self) -> None:
        async with self.serving(answered(), answered()) as client:
            with patch("responses_app.runs.prepare.length.truncation.MAX_PIXELS", 2 * 4 * 3):
                self.refused(await self.post(client, input=[user(*[part()] * 3)]), 400, "image_too_large", "input", "in all")
                await self.made(client, input=[user(*[part()] * 2)])
                await self.made(client, input=[user(*[part()] * 2), user(part())], truncation="auto")
                self.assertEqual(self.shown, [RED])


class BlindTest(ApiCase):
    """A model that takes text only."""

    async def test_text_model_refuses_an_image_by_its_path(self) -> None:
        async with self.serving() as client:
            for stream in (False, True):
                with self.subTest(stream=stream):
                    response = await self.post(client, input=[user("?"), user("Look:", part())], stream=stream)
                    self.refused(response, 400, "unsupported_value", "input[1].content[1]", "this model takes text only")
                    self.assertEqual(await rows(), 0)

    async def test_nothing_is_fetched_for_it(self) -> None:
        async with self.serving() as client:
            response = await self.post(client, input=[user(part("https://images.invalid/a.png"))])
            self.refused(response, 400, "unsupported_value", "input[0].content[0]")

    async def test_text_model_refuses_images_in_continued_items(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client)
            conversation = await client.post(
                "/v1/conversations", orjson.dumps({"items": [user(part())]}), content_type="application/json"
            )
            uid = orjson.loads(conversation.content)["id"]
            self.refused(await self.post(client, conversation=uid), 400, "unsupported_value", "conversation", "images")
            row = await Item.objects.filter(response__uid=made["id"], direction="input").aget()
            body = {**orjson.loads(row.body), "content": [part()]}
            await Item.objects.filter(pk=row.pk).aupdate(body=orjson.dumps(body).decode())
            response = await self.post(client, previous_response_id=made["id"])
            self.refused(response, 400, "unsupported_value", "previous_response_id", "images")


class FetchedTest(SeeingCase):
    """Images by address: fetched once, and stored unchanged."""

    @contextmanager
    def web(self) -> Iterator[ImageServer]:
        """A site that may be fetched from."""
        with (
            run_image_server() as here,
            self.settings(RESPONSES_IMAGE_URLS="http", RESPONSES_IMAGE_HOSTS=frozenset({"127.0.0.1"})),
        ):
            here.pages["/a.png"] = RED
            yield here

    async def test_fetched_image_is_not_fetched_again_in_a_later_turn(self) -> None:
        with self.web() as here:
            url = here.url("/a.png", "127.0.0.1")
            async with self.serving(answered(), answered(), answered()) as client:
                first = await self.made(client, input=[user("One:", part(url), part(url))])
                self.assertEqual(self.shown, [RED, RED])
                here.pages.clear()
                second = await self.made(client, input="And?", previous_response_id=first["id"])
                self.assertEqual(self.shown, [RED, RED])
                await self.made(client, input=[{"type": "item_reference", "id": (await self.message())["id"]}])
                self.assertEqual(self.shown, [RED, RED])
                listed = await client.get(f"/v1/responses/{second['id']}/input_items?include=message.input_image.image_url")
            self.assertEqual(len(here.requests), 1)
        parts = orjson.loads(listed.content)["data"][-1]["content"]
        self.assertEqual(parts[1], {"type": "input_image", "detail": "auto", "image_url": url})
        self.assertEqual(await Image.objects.acount(), 2)

    async def message(self) -> dict[str, Any]:
        """The first item that was stored."""
        message: dict[str, Any] = orjson.loads((await Item.objects.order_by("pk").afirst()).body)  # type: ignore[union-attr]
        return message

    async def test_an_item_that_is_sent_again_under_its_id_is_not_fetched_again(self) -> None:
        with self.web() as here:
            item = {"id": "msg_sent", **user("One:", part(here.url("/a.png", "127.0.0.1")))}
            async with self.serving(answered(), answered()) as client:
                await self.made(client, input=[item])
                here.pages.clear()
                await self.made(client, input=[item, user("And?")], store=False)
                self.assertEqual(self.shown, [RED])
                other = {**item, "id": "msg_other"}
                self.refused(
                    await self.post(client, input=[other]), 400, "invalid_image_url", "input[0].content[1].image_url", "404"
                )

    async def test_stored_image_is_deleted_with_its_item(self) -> None:
        with self.web() as here:
            async with self.serving(answered()) as client:
                made = await self.made(client, input=[user(part(here.url("/a.png", "127.0.0.1")))])
                self.assertEqual(await Image.objects.acount(), 1)
                await client.delete(f"/v1/responses/{made['id']}")
        self.assertEqual(await Image.objects.acount(), 0)

    async def test_unstored_requests_store_no_image(self) -> None:
        with self.web() as here:
            async with self.serving(answered()) as client:
                body = {"input": [user(part(here.url("/a.png", "127.0.0.1")))]}
                await client.post(
                    "/v1/responses/input_tokens", orjson.dumps({"model": "m", **body}), content_type="application/json"
                )
                await self.made(client, store=False, **body)
        self.assertEqual(self.shown, [RED])
        self.assertEqual(await Image.objects.acount(), 0)

    async def test_a_conversation_fetches_it_when_it_is_added(self) -> None:
        with self.web() as here:
            url = here.url("/a.png", "127.0.0.1")
            async with self.serving(answered(), answered()) as client:
                made = await client.post(
                    "/v1/conversations", orjson.dumps({"items": [user("One:", part(url))]}), content_type="application/json"
                )
                uid = orjson.loads(made.content)["id"]
                here.pages["/b.png"] = BLUE
                more = orjson.dumps({"items": [user(part(here.url("/b.png", "127.0.0.1")))]})
                await client.post(f"/v1/conversations/{uid}/items", more, content_type="application/json")
                here.pages.clear()
                await self.made(client, input="And?", conversation=uid)
                self.assertEqual(self.shown, [RED, BLUE])
                await self.made(client, input="Again?", conversation=uid)
                self.assertEqual(self.shown, [RED, BLUE])

    async def test_failed_fetch_is_refused_by_its_path(self) -> None:
        with self.web() as here:
            here.pages["/text"] = b"no picture"
            async with self.serving() as client:
                for path, code, words in (
                    ("/none", "invalid_image_url", "HTTP status 404"),
                    ("/text", "invalid_image_format", "no image"),
                ):
                    with self.subTest(path=path):
                        for stream in (False, True):
                            with self.subTest(stream=stream):
                                bad = part(here.url(path, "127.0.0.1"))
                                response = await self.post(client, input=[user(part()), user("Look:", bad)], stream=stream)
                                self.refused(response, 400, code, "input[1].content[1].image_url", words)
                                self.assertEqual(await rows(), 0)

    async def test_data_urls_work_without_fetching(self) -> None:
        with self.settings(RESPONSES_IMAGE_URLS="none"):
            async with self.serving(answered()) as client:
                response = await self.post(client, input=[user(part("https://example.com/a.png"))])
                self.refused(response, 400, "invalid_image_url", "input[0].content[0].image_url", "data URLs")
                await self.made(client, input=[user(part())])


class ListedTest(SeeingCase):
    """Images in lists of items."""

    QUERY = "?include=message.input_image.image_url"

    async def listed(self, client: Any, path: str) -> list[dict[str, Any]]:
        """The items of a list, oldest first."""
        listed_items: list[dict[str, Any]] = orjson.loads((await client.get(path)).content)["data"]
        return listed_items[::-1]

    async def test_input_items_has_their_urls_if_asked(self) -> None:
        async with self.serving(answered()) as client:
            output = {"type": "function_call_output", "call_id": "c1", "output": [part(detail="low")]}
            made = await self.made(client, input=[user("Look:", part(detail="high")), FUNCTION, output], tools=[TOOL])
            path = f"/v1/responses/{made['id']}/input_items"
            whole, bare = await self.listed(client, path + self.QUERY), await self.listed(client, path)
        sent = {"type": "input_image", "detail": "high", "image_url": data_url(RED)}
        self.assertEqual(whole[0]["content"][1], sent)
        self.assertEqual(bare[0]["content"][1], {**sent, "image_url": None})
        for items in (whole, bare):
            with self.subTest(with_urls=items is whole):
                self.assertEqual(items[2]["output"][0], {**sent, "detail": "low"})

    async def test_the_items_of_a_conversation_have_them_if_asked(self) -> None:
        async with self.serving() as client:
            made = await client.post(
                "/v1/conversations", orjson.dumps({"items": [user(part())]}), content_type="application/json"
            )
            path = f"/v1/conversations/{orjson.loads(made.content)['id']}/items"
            for query, url in ((self.QUERY, data_url(RED)), ("", None)):
                with self.subTest(query=query):
                    items = await self.listed(client, path + query)
                    self.assertEqual(items[0]["content"][0]["image_url"], url)
                    one = await client.get(f"{path}/{items[0]['id']}{query}")
                    self.assertEqual(orjson.loads(one.content)["content"][0]["image_url"], url)
