"""Pictures in results of server tools on the pages of a response: shown from the item, or from the output for the model."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import orjson
from django.contrib.auth.models import User

from responses_app.models import Direction, Event, Image, Response, ToolOutput
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.content import tool_outputs
from tests.support.api.image_case import BLUE, RED, data_url, png
from tests.support.web.page_case import WebCase, item, made, snapshot

SOURCE = re.compile(r'<img class="picture" src="([^"]+)" alt="[^"]+" (?:width="\d+" height="\d+" )?loading="lazy">')
ITEM = "/responses/resp_1/items/{}/images/{}"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'/>"


def image(data: bytes, media_type: str = "image/png") -> dict[str, str]:
    """Return a picture as MCP servers send it."""
    return {"type": "image", "data": b64encode(data).decode(), "mimeType": media_type}


def mcp_call(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return an MCP call whose output has content parts."""
    output = orjson.dumps(parts).decode() if parts else None
    return {
        "id": "mcp_1",
        "type": "mcp_call",
        "server_label": "files",
        "name": "f",
        "arguments": "{}",
        "output": output,
        **fields,
    }


def code_call(**fields: Any) -> dict[str, Any]:
    """Return a run of code."""
    return {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "code": "plot()",
        "container_id": "cntr_1",
        "outputs": None,
        **fields,
    }


class ResultPicturesTest(WebCase):
    def stored(self, call: dict[str, Any]) -> Response:
        """Store a response with a call as its output."""
        row = made()
        snapshot(row, [call])
        item(row, call["id"], call["type"], **{key: value for key, value in call.items() if key not in ("id", "type")})
        return row

    def shown(self, url: str = "/responses/resp_1") -> list[bytes]:
        """Return the pictures that a page shows."""
        pictures = []
        for source in SOURCE.findall(self.page(url)):
            answer = self.client.get(source)
            self.assertEqual((answer.status_code, answer["Content-Type"]), (200, "image/png"), source)
            self.assertEqual(answer["X-Content-Type-Options"], "nosniff")
            pictures.append(answer.content)
        return pictures

    def test_pictures_of_an_mcp_result_are_shown_in_order(self) -> None:
        resource = {"type": "resource", "resource": {"uri": "f", "mimeType": "image/png", "blob": image(RED)["data"]}}
        self.stored(mcp_call(image(BLUE), {"type": "text", "text": "A map <b>"}, resource))
        self.assertEqual(self.shown(), [BLUE, RED])
        self.assertIn("A map &lt;b&gt;", self.page("/responses/resp_1"))

    def test_pictures_have_the_size_in_their_header_and_at_most_the_height_of_the_page(self) -> None:
        wide, tall = png(size=(900, 90)), png(size=(100, 720))
        self.stored(mcp_call(image(wide), image(tall)))
        page = self.page("/responses/resp_1")
        self.assertIn('width="900" height="90"', page)
        self.assertIn('width="40" height="288"', page)

    def test_input_pictures_by_file_id_and_url_have_the_size_of_the_stored_bytes(self) -> None:
        named = [
            {"type": "input_image", "file_id": "file-1"},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        ]
        message = item(made(), "msg_1", "message", Direction.INPUT, role="user", content=named)
        Image.objects.create(item=message, url="file-1", data=png(size=(900, 90)))
        Image.objects.create(item=message, url="https://example.org/a.png", data=png(size=(40, 30)))
        page = self.page("/responses/resp_1")
        self.assertIn('width="900" height="90"', page)
        self.assertIn('width="40" height="30"', page)

    def test_pictures_of_an_mcp_error_are_shown(self) -> None:
        error = {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "No."}, image(RED)]}
        self.stored(mcp_call(error=error))
        self.assertEqual(self.shown(), [RED])
        self.assertIn("The tool reported an error: No.", self.page("/responses/resp_1"))

    def test_pictures_of_code_are_shown_behind_the_logs(self) -> None:
        outputs = [{"type": "logs", "logs": "4 <b>"}, {"type": "image", "url": data_url(BLUE)}]
        row = self.stored(code_call(outputs=outputs))
        tool_outputs.insert(row, {"ci_1": ModelOutput("4", (data_url(BLUE),))})
        self.assertEqual(self.shown(), [BLUE])
        page = self.page("/responses/resp_1")
        self.assertIn("4 &lt;b&gt;", page)
        self.assertNotIn("Sent to the model", page)

    def test_output_for_the_model_alone_is_shown(self) -> None:
        row = self.stored(code_call())
        tool_outputs.insert(row, {"ci_1": ModelOutput("Value: 4 <b>", (data_url(BLUE), data_url(RED)))})
        self.assertEqual(self.shown(), [BLUE, RED])
        page = self.page("/responses/resp_1")
        self.assertIn("Sent to the model", page)
        self.assertIn("Value: 4 &lt;b&gt;", page)

    def test_pictures_of_a_running_response_are_shown(self) -> None:
        row = made(ended_at=None, status="in_progress")
        snapshot(row, [])
        Event.objects.filter(response=row, number=1).delete()
        call = mcp_call(image(BLUE), status="completed")
        added: dict[str, Any] = {"type": "response.output_item.added", "output_index": 0, "item": {**call, "output": None}}
        done: dict[str, Any] = {"type": "response.output_item.done", "output_index": 0, "item": call}
        for number, event in enumerate((added, done), 1):
            data = orjson.dumps({**event, "sequence_number": number}).decode()
            Event.objects.create(response=row, number=number, type=event["type"], data=data)
        # In the payload of the event, and in the state of the response at the event.
        self.assertEqual(self.shown("/responses/resp_1/events/2"), [BLUE, BLUE])
        self.assertEqual(self.client.get("/responses/resp_1/items/mcp_1").json(), call)
        self.assertEqual(self.client.get("/responses/resp_1/items/mcp_2").status_code, 404)

    def test_event_with_the_result_shows_the_picture(self) -> None:
        row = self.stored(mcp_call(image(BLUE)))
        Event.objects.filter(response=row, number=1).update(number=2)
        done: dict[str, Any] = {
            "type": "response.output_item.done",
            "sequence_number": 1,
            "output_index": 0,
            "item": mcp_call(image(BLUE)),
        }
        Event.objects.create(response=row, number=1, type=done["type"], data=orjson.dumps(done).decode())
        self.assertEqual(self.shown("/responses/resp_1/events/1"), [BLUE])
        self.assertEqual(self.shown("/responses/resp_1/events/0"), [])

    def test_other_data_is_named_and_not_sent(self) -> None:
        for name, part in (("svg", image(SVG, "image/svg+xml")), ("svg as png", image(SVG)), ("html", image(b"<script>"))):
            with self.subTest(name=name):
                Response.objects.all().delete()
                self.stored(mcp_call(part))
                self.assertEqual(self.shown(), [])
                self.assertIn(
                    f"[image, {part['mimeType']}, {len(part['data'])} characters of base64]", self.page("/responses/resp_1")
                )
                self.assertEqual(self.client.get(ITEM.format("mcp_1", 0)).status_code, 404)

    def test_pictures_of_hidden_media_types_are_not_sent(self) -> None:
        row = self.stored(code_call())
        ToolOutput.objects.create(response=row, item_uid="ci_1", images=[SVG], media_types=["image/svg+xml"])
        self.assertEqual(self.client.get(ITEM.format("ci_1", 0)).status_code, 404)
        self.assertEqual(self.client.get(ITEM.format("ci_1", 1)).status_code, 404)

    def test_people_of_other_projects_see_no_picture(self) -> None:
        self.stored(mcp_call(image(BLUE)))
        self.client.force_login(User.objects.create_user("stranger"))
        self.assertEqual(self.client.get(ITEM.format("mcp_1", 0)).status_code, 404)
