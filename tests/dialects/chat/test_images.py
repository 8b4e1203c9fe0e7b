"""Images in the prompts of chat models: supporting templates, and positions of placeholders."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel

from responses_app.demo import build
from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.content import iter_images
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from tests.support.dialects.parser_driver import harmony

TODAY = date(2026, 1, 1)
LOOP = "{%% for message in messages %%}[{{ message.role }}]%s{%% endfor %%}"
TEXT = LOOP % "{{ message.content }}"
JSON = LOOP % "{% if message.content is string %}{{ message.content }}{% else %}{{ message.content | tojson }}{% endif %}"
PARTS = LOOP % (
    "{% for part in message.content %}{% if part.type == 'image' %}<image>"
    "{% elif part.type == 'text' %}{{ part.text }}{% endif %}{% endfor %}"
)
EITHER = LOOP % (
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' or 'image' in part %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}"
)
SPACED = LOOP % (
    "{% for part in message.content %}{{ '' if loop.first else '\n' }}"
    "{% if part.type == 'image' %}<image>{% else %}{{ part.text | trim }}{% endif %}{% endfor %}"
)
# As the template of Command 4: each text of a message has markers of its own.
MARKED_TEXTS = LOOP % (
    "{% if message.content is string %}<text>{{ message.content }}</text>{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}<image>{% else %}<text>{{ part.text }}</text>{% endif %}{% endfor %}{% endif %}"
)
# Tool outputs are text only in this template.
TEXT_ONLY_TOOLS = LOOP % (
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}"
    "{% elif part.type == 'image' and message.role != 'tool' %}<image>{% endif %}{% endfor %}"
)
# Images are in the first message only in this template.
FIRST_ONLY = LOOP % (
    "{% for part in message.content %}{% if part.type == 'text' %}{{ part.text }}"
    "{% elif part.type == 'image' and messages | length == 1 %}<image>{% endif %}{% endfor %}"
)
NO_RULES = "{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}" + EITHER
REFUSING = LOOP % "{% if message.content is not string %}{{ raise_exception('text only') }}{% endif %}{{ message.content }}"
SPECIAL = ("<image>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>", "<eos>")

IMAGE = {"type": "input_image", "image_url": "x", "detail": "auto"}


def vocabulary() -> TokenizerAdapter:
    """Create a tokenizer with a token per byte."""
    inner = Tokenizer(models.BPE(vocab={letter: at for at, letter in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    inner.pre_tokenizer = ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(text, special=True) for text in SPECIAL])
    return TokenizerAdapter(inner)


VOCABULARY = vocabulary()


def chat(template: str, *, supports_images: bool = True) -> ChatDialect:
    return ChatDialect(VOCABULARY, ChatTemplate(template), [], supports_images=supports_images)


def user(*parts: Any, **fields: Any) -> dict[str, Any]:
    content = [{"type": "input_text", "text": part} if isinstance(part, str) else part for part in parts]
    return {"type": "message", "id": "msg_1", "role": "user", "content": content, **fields}


def returned(*parts: Any) -> list[dict[str, Any]]:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "draw", "arguments": "{}"}
    return [
        user("Draw."),
        call,
        {"type": "function_call_output", "id": "fco_1", "call_id": "c", "output": user(*parts)["content"]},
    ]


def text(template: str, *items: dict[str, Any], instructions: str | None = None) -> str:
    return chat(template)._text(Turn(items, TODAY, instructions))


@pytest.mark.parametrize(
    ("template", "image", "prompt"),
    [
        (TEXT, None, ""),
        (JSON, None, ""),
        (REFUSING, None, ""),
        ("{{ raise_exception('never') }}", None, ""),
        (PARTS, "<image>", "[user]Look:<image>there"),
        (SPACED, "<image>", "[user]Look:\n<image>\nthere"),
        (EITHER, "<|vision_start|><|image_pad|><|vision_end|>", "[user]Look:<|vision_start|><|image_pad|><|vision_end|>there"),
        (MARKED_TEXTS, "<image>", "[user]<text>Look:</text><image><text>there</text>"),
    ],
)
def test_image_placeholder_of_a_template_is_detected(template: str, image: str | None, prompt: str) -> None:
    assert ChatTemplate(template).image == image
    assert chat(template).supports_images == (image is not None)
    assert not chat(template, supports_images=False).supports_images
    if image is not None:
        assert text(template, user("Look:", IMAGE, "there")) == prompt


@pytest.mark.parametrize("template", [PARTS, SPACED, EITHER, MARKED_TEXTS])
@pytest.mark.parametrize("parts", [(IMAGE,), ("Look:", IMAGE), (IMAGE, "there"), (IMAGE, IMAGE, "there")])
def test_images_are_taken_wherever_the_texts_stand(template: str, parts: tuple[Any, ...]) -> None:
    assert text(template, user(*parts)).count(str(ChatTemplate(template).image)) == parts.count(IMAGE)


@pytest.mark.parametrize("template", [PARTS, SPACED, EITHER, TEXT])
def test_text_without_images_reads_the_same_in_all_of_them(template: str) -> None:
    assert text(template, user("One", "two"), instructions="Be brief.") == "[system]Be brief.[user]One\ntwo"


@pytest.mark.parametrize("template", [TEXT, JSON, REFUSING])
def test_text_only_template_gets_placeholders_of_the_model(template: str) -> None:
    model = ChatDialect(VOCABULARY, ChatTemplate(template), [], supports_images=True, image_placeholder=lambda _: "<image>")
    assert model.supports_images
    turn = Turn([user("Look:", IMAGE, "there <image>"), *returned(IMAGE, "Here")], TODAY)
    assert "[user]Look:\n<image>\nthere " in model._text(turn)
    assert model._text(turn).endswith("[tool]<image>\nHere")
    assert list[int | None](model.render(turn)).count(VOCABULARY.id("<image>")) == 2
    assert not ChatDialect(
        VOCABULARY, ChatTemplate(template), [], supports_images=False, image_placeholder=lambda _: "<image>"
    ).supports_images


def test_placeholders_may_be_numbered_through_the_prompt() -> None:
    model = ChatDialect(
        VOCABULARY, ChatTemplate(TEXT), [], supports_images=True, image_placeholder=lambda number: f"<|image_{number}|>"
    )
    assert model._text(Turn([user(IMAGE, "and", IMAGE), user(IMAGE)], TODAY)) == (
        "[user]<|image_1|>\nand\n<|image_2|>[user]<|image_3|>"
    )
    # A placeholder typed by the user is not an image.
    with pytest.raises(UnsupportedInput, match="does not take the image"):
        model._text(Turn([user(IMAGE, "<|image_1|>")], TODAY))


def test_a_template_that_takes_parts_writes_its_own_placeholders() -> None:
    model = ChatDialect(VOCABULARY, ChatTemplate(PARTS), [], supports_images=True, image_placeholder=lambda _: "(image)")
    assert model._text(Turn([user("Look:", IMAGE)], TODAY)) == "[user]Look:<image>"


def test_rules_are_put_before_an_image_where_there_is_no_system() -> None:
    rendered = text(NO_RULES, user(IMAGE, "What?"), instructions="Be brief.")
    assert rendered == "[user]Be brief.\n\n<|vision_start|><|image_pad|><|vision_end|>What?"


def test_tools_return_images() -> None:
    assert text(PARTS, *returned("Here:", IMAGE)).endswith("[tool]Here:<image>")


def test_demo_model_reads_the_image_in_the_output() -> None:
    template = (build.FOLDERS["demo-chat"] / "chat_template.jinja").read_text()
    assert chat(template).fit.output_images
    assert "<tool_response>\nHere:\n[picture:<image>]\n</tool_response>" in text(template, *returned("Here:", IMAGE))


@pytest.mark.parametrize(
    ("items", "prompt"),
    [
        pytest.param(returned("Here:", IMAGE), "[tool]Here:[user]Images of the output of draw:<image>", id="end"),
        pytest.param(
            [*returned("Here:", IMAGE), user("And", IMAGE)],
            "[tool]Here:[user]Images of the output of draw:<image>And<image>",
            id="before a message",
        ),
        pytest.param([user(IMAGE), *returned("Here:")], "[tool]Here:", id="no image in the output"),
    ],
)
def test_images_of_outputs_follow_where_the_template_would_lose_these(items: list[dict[str, Any]], prompt: str) -> None:
    rendered = text(TEXT_ONLY_TOOLS, *items)
    assert rendered.endswith(prompt)
    assert rendered.count("<image>") == len(list(iter_images(items)))


def test_an_image_that_the_template_would_lose_is_refused_by_its_path() -> None:
    with pytest.raises(UnsupportedInput) as caught:
        text(FIRST_ONLY, user("One"), user("Two", IMAGE))
    assert (caught.value.param, caught.value.code) == ("input[1].content[1]", "unsupported_value")


@pytest.mark.parametrize("dialect", [harmony(), chat(TEXT), chat(PARTS, supports_images=False)])
@pytest.mark.parametrize(
    ("items", "path"), [([user("Look:", IMAGE)], "input[0].content[1]"), (returned(IMAGE), "input[2].output[0]")]
)
def test_a_model_that_does_not_see_refuses_by_path(dialect: Any, items: list[dict[str, Any]], path: str) -> None:
    assert not dialect.supports_images
    with pytest.raises(UnsupportedInput, match="this model takes text only") as caught:
        dialect.render(Turn(items, TODAY))
    assert (caught.value.param, caught.value.code) == (path, "unsupported_value")


def test_images_are_listed_in_prompt_order() -> None:
    calls = [{"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "draw", "arguments": "{}"} for name in "ab"]
    outputs = [
        {"type": "function_call_output", "id": f"fco_{name}", "call_id": name, "output": [{**IMAGE, "image_url": name}]}
        for name in "ba"
    ]
    items = [user({**IMAGE, "image_url": "first"}), *calls, *outputs]
    assert [image.url for image in iter_images(items)] == ["first", "a", "b"]
    assert [image.path for image in iter_images(items)] == ["input[0].content[0]", "input[4].output[0]", "input[3].output[0]"]


words = st.lists(st.sampled_from([IMAGE, "<image>", "<|image_pad|>", "a", "", "<|vision_start|>", "\ue0f10\ue0f2"]), max_size=6)


@given(st.lists(words, min_size=1, max_size=4), st.sampled_from([PARTS, SPACED, EITHER]))
def test_prompt_has_as_many_placeholders_as_images(messages: list[list[Any]], template: str) -> None:
    turn = Turn([user(*parts) for parts in messages], TODAY)
    token = VOCABULARY.id("<|image_pad|>" if template is EITHER else "<image>")
    assert list[int | None](chat(template).render(turn)).count(token) == len(list(iter_images(turn.items)))
