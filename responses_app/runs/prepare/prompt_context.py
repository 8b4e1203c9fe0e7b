"""Prompt context: all facts about one prompt. Every stage of the preparation takes the context and adds to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from responses_app.dialects.base import Dialect, UnsupportedInput
from responses_app.dialects.content import ImageReference
from responses_app.dialects.text.token_cache import TokenCache
from responses_app.engine_interface import EngineUnavailable
from responses_app.errors import InvalidRequest, ServiceUnavailable
from responses_app.protocol.deltas import Delta
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare.grammars import ConvertedGrammars
from responses_app.runs.prepare.media import DecodedImages, NewMedia
from responses_app.store.content.history import ConversationContext
from responses_app.store.content.images import ImageBytes
from responses_app.tools.base import ToolExecutor, ToolOffer
from responses_app.tools.outputs.output_limit import PromptPictures

NO_CONTEXT = ConversationContext((), (), "", "completed")


def _today() -> date:
    return datetime.now(UTC).date()


@dataclass(frozen=True, slots=True)
class PromptContext:
    """All facts about the prompt of the response or round `uid`. A stage returns the context with more fields.

    `tools` are the tools that the server runs for the request. With `measure` the length of the prompt is counted in any case.
    `token_cache` has the tokens of earlier prompts. `today` is the date that the prompt names.
    """

    uid: str
    create_request: CreateRequest
    served: ServedModel
    tools: ToolExecutor | None = None
    measure: bool = False
    token_cache: TokenCache | None = None
    today: date = field(default_factory=_today)
    # Added by `load`: the context that the request continues, the items of the request, all items of the prompt, and the images that
    # those show. `images` are the stored bytes and texts of files; `resolve` adds those of `data_urls` and `new_media`.
    # `create_request` is then the request as items of the conversation change it, `session` the `session_id` of the chain.
    before: ConversationContext = NO_CONTEXT
    input_items: Sequence[dict[str, Any]] = ()
    items: Sequence[Mapping[str, Any]] = ()
    references: Sequence[ImageReference] = ()
    images: ImageBytes = field(default_factory=dict)
    data_urls: Sequence[ImageReference] = ()
    new_media: NewMedia | None = None
    session: str = ""
    # Tools of the server that are offered in the round, and the items that the server runs before the first generation. With
    # `openings` the prompt only shows that the request fits. At most `calls_left` calls are made; None for any number. With
    # `withholds_tools` the model is not offered the tools of the server.
    offer: ToolOffer | None = None
    openings: Sequence[Delta] = ()
    calls_left: int | None = None
    withholds_tools: bool = False
    # Added by `resolve`: pictures in outputs of server tools, decoded images, converted grammars.
    pictures: PromptPictures = field(default_factory=PromptPictures)
    decoded: DecodedImages = field(default_factory=dict)
    grammars: ConvertedGrammars = field(default_factory=lambda: ConvertedGrammars({}))

    @property
    def has_log(self) -> bool:
        """Return whether the response is stored, at least while it runs."""
        return self.create_request.has_log or self.before.conversation is not None

    @property
    def dialect(self) -> Dialect:
        """Dialect of the model, which is loaded."""
        assert self.served.dialect is not None  # noqa: S101 - started
        return self.served.dialect

    @contextmanager
    def map_errors(self, items: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Raise InvalidRequest for unsupported input, with the client's path of `items`, and ServiceUnavailable without an engine."""
        try:
            yield
        except UnsupportedInput as error:
            input_ids = [item["id"] for item in self.input_items]
            param = client_path(error.param, self.create_request, items, input_ids)
            raise InvalidRequest(str(error), param=param, code=error.code) from error
        except EngineUnavailable as error:
            message = f"The engine of '{self.served.name}' does not answer. Try again in a moment."
            raise ServiceUnavailable(message) from error


def client_path(
    param: str | None, create_request: CreateRequest, items: Sequence[Mapping[str, Any]], input_ids: Sequence[object]
) -> str | None:
    """Translate the path of an item in the prompt into the path of an item in the request of the client.

    `input_ids` has the ids of the items of the request, in the order of its input.
    """
    place = re.fullmatch(r"input\[(\d+)\](.*)", param or "", re.DOTALL)
    if place is None:
        return param
    uid = items[int(place[1])]["id"]
    if uid in input_ids:
        return f"input[{input_ids.index(uid)}]{place[2]}"
    return "conversation" if create_request.conversation else "previous_response_id"
