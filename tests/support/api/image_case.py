"""A model that sees, for tests of the API: a chat dialect of one token per byte, and pictures to show it."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from io import BytesIO
from typing import Any

from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engines.replay.engine import Recording, ReplayEngine, recording
from tests.support.api.case import ApiCase

SPECIAL = ("<eos>", "<|start|>", "<image>")
# As those of Idefics: text in parts only. Tools return whatever a user may say.
TEMPLATE = (
    "{% for message in messages %}<|start|>{{ message.role }}:"
    "{% for part in message.content %}{% if part.type == 'image' %}<image>{% else %}{{ part.text }}{% endif %}{% endfor %}"
    "{% if message.tool_calls %}{{ message.tool_calls | tojson }}{% endif %}<eos>\n"
    "{% endfor %}<|start|>assistant:"
)
IMAGE_TOKENS = 7


@cache
def tokenizer() -> Tokenizer:
    """Build a tokenizer with a token for each byte."""
    inner = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return inner


@cache
def dialect() -> ChatDialect:
    """Made once."""
    return ChatDialect(
        TokenizerAdapter(tokenizer()),
        ChatTemplate(TEMPLATE),
        [int(tokenizer().token_to_id("<eos>") or 0)],
        supports_images=True,
    )


def encode(text: str) -> list[int]:
    """Token ids; special tokens are written unchanged."""
    ids: list[int] = tokenizer().encode(text, add_special_tokens=False).ids
    return ids


def answered(text: str = "I see.") -> Recording:
    """A line of tape that says `text`."""
    return recording(encode(f"{text}<eos>"))


def png(colour: str = "red", size: tuple[int, int] = (4, 3), kind: str = "PNG") -> bytes:
    """Return a picture in a single colour."""
    out = BytesIO()
    Image.new("RGB", size, colour).save(out, kind)
    return out.getvalue()


def data_url(picture: bytes, kind: str = "image/png") -> str:
    """Return a picture as clients send it."""
    return f"data:{kind};base64,{b64encode(picture).decode()}"


RED, BLUE = png("red"), png("blue")


def part(url: str | None = None, **fields: Any) -> dict[str, Any]:
    """An `input_image`."""
    return {"type": "input_image", "image_url": url or data_url(RED), **fields}


def user(*parts: str | dict[str, Any]) -> dict[str, Any]:
    """A message of the user, of texts and other parts."""
    return {"role": "user", "content": [{"type": "input_text", "text": one} if isinstance(one, str) else one for one in parts]}


class SeeingCase(ApiCase):
    """A model called `m` that sees."""

    dialect = dialect()

    def setUp(self) -> None:
        super().setUp()
        self.engine = ReplayEngine(image_tokens=IMAGE_TOKENS)

    @property
    def prompt(self) -> str:
        """Return the last prompt of the engine."""
        return str(tokenizer().decode(list(self.engine.requests[-1].prompt), skip_special_tokens=False))

    @property
    def shown(self) -> list[bytes]:
        """Return the last images of the engine."""
        return list(self.engine.requests[-1].images)
