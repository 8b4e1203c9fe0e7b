"""Tokenizers and chat templates of checkpoints: every form of release opens, or is refused by a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.base import Dialect, Turn
from tests.support.dialects.checkpoints import byte_tokenizer_json, tekken_json, write_files
from tests.support.dialects.open_dialect import open_dialect
from tests.support.dialects.parser_driver import TODAY, WEATHER, assistant, call_output, function_call, reasoning, turn, user

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

ONE_NAME = "{% for message in messages %}NAME {{ message.content }}{% endfor %}"
CONFIG = {"model_type": "llama"}
REMOTE = {"auto_map": {"AutoTokenizer": ["tokenization_x.XTokenizer", None]}}


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")


def opened(folder: Path, **how: Any) -> Dialect:
    return open_dialect(str(folder), reasoning_parser="none", tool_parser="none", **how)


def prompt(dialect: Dialect, to: Turn | None = None) -> str:
    return dialect.token_text(dialect.render(to or turn(user("Hi"), tools=())))


def named(*names: str) -> list[dict[str, str]]:
    return [{"name": name, "template": ONE_NAME.replace("NAME", name)} for name in names]


@pytest.mark.parametrize(
    ("files", "chat_template", "expected"),
    [
        ({"chat_template_json": {"chat_template": ONE_NAME}}, None, "NAME Hi"),
        ({"chat_template_jinja": ONE_NAME}, None, "NAME Hi"),
        ({"tokenizer_config_json": {"chat_template": named("default", "rag")}}, None, "default Hi"),
        ({"tokenizer_config_json": {"chat_template": named("chat")}}, None, "chat Hi"),
        ({"tokenizer_config_json": {"chat_template": named("rag", "tool_use")}}, "rag", "rag Hi"),
        ({"additional_chat_templates__rag_jinja": ONE_NAME}, None, "NAME Hi"),
        ({"chat_template_jinja": "own", "additional_chat_templates__rag_jinja": ONE_NAME}, None, "own"),
        ({"chat_template_jinja": "own", "additional_chat_templates__rag_jinja": ONE_NAME}, "rag", "NAME Hi"),
        ({"chat_template_jinja": "own", "other_jinja": ONE_NAME}, "FOLDER/other.jinja", "NAME Hi"),
        ({"other_jinja": ONE_NAME}, "FOLDER/other.jinja", "NAME Hi"),
    ],
    ids=[
        "json",
        "jinja",
        "list_with_default",
        "list_of_one",
        "list_by_name",
        "folder_of_one",
        "folder_beside_default",
        "folder_by_name",
        "file_replaces",
        "file_alone",
    ],
)
def test_the_template_is_found(tmp_path: Path, files: dict[str, Any], chat_template: str | None, expected: str) -> None:
    write_files(tmp_path, config_json=CONFIG, tokenizer_json=byte_tokenizer_json("<s>"), **files)
    path = chat_template and chat_template.replace("FOLDER", str(tmp_path))
    assert prompt(opened(tmp_path, chat_template=path)) == expected


@pytest.mark.parametrize(
    ("files", "chat_template", "message"),
    [
        ({}, None, r"has no chat template, .*chat_template=FILE"),
        ({"chat_template_jinja": " \n"}, None, "has no chat template"),
        ({"tokenizer_config_json": {"chat_template": named("tool_use", "rag")}}, None, r"no default: rag, tool_use\. .*=NAME"),
        ({}, "/bin/sh", r"chat_template=/bin/sh is not text in UTF-8: name a file with a Jinja template"),
        ({"chat_template_jinja": "x"}, "missing.jinja", r"chat_template=missing\.jinja is neither a file nor .*\(default\)"),
    ],
    ids=["none", "empty", "ambiguous", "binary_file", "missing_file"],
)
def test_a_missing_template_is_refused(tmp_path: Path, files: dict[str, Any], chat_template: str | None, message: str) -> None:
    write_files(tmp_path, config_json=CONFIG, tokenizer_json=byte_tokenizer_json(), **files)
    with pytest.raises(ValueError, match=message):
        opened(tmp_path, chat_template=chat_template)


def test_code_of_a_tokenizer_is_not_run(tmp_path: Path) -> None:
    code = f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'ran').touch()"
    write_files(tmp_path, config_json=CONFIG, tokenizer_config_json=REMOTE, tokenization_x_py=code, chat_template_jinja="x")
    with pytest.raises(ValueError, match=r"is Python code \(auto_map .* is not run\. Add a tokenizer\.json .*tokenizer="):
        opened(tmp_path)
    write_files(tmp_path, tokenizer_json=byte_tokenizer_json("<s>"), chat_template_jinja=ONE_NAME)
    assert prompt(opened(tmp_path)) == "NAME Hi"
    assert not (tmp_path / "ran").exists()


def test_code_of_a_configuration_is_not_run(tmp_path: Path) -> None:
    config = {"model_type": "unheard", "auto_map": {"AutoConfig": "configuration_x.XConfig"}}
    code = f"import pathlib; pathlib.Path({str(tmp_path)!r}, 'ran').touch()"
    write_files(tmp_path, config_json=config, configuration_x_py=code)
    write_files(tmp_path, tokenizer_json=byte_tokenizer_json("<s>"), chat_template_jinja=ONE_NAME)
    assert prompt(opened(tmp_path)) == "NAME Hi"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("eos", ["<s>", [0, "<s>"], True])
def test_ends_of_turns_that_are_no_ids_are_refused_by_the_file(tmp_path: Path, eos: object) -> None:
    write_files(tmp_path, config_json=CONFIG, tokenizer_json=byte_tokenizer_json("<s>"), chat_template_jinja=ONE_NAME)
    write_files(tmp_path, generation_config_json={"eos_token_id": [256, 7]})
    assert opened(tmp_path).stop_token_ids == (7, 256)
    write_files(tmp_path, generation_config_json={"eos_token_id": eos})
    with pytest.raises(ValueError, match=r"^generation_config.json of .* has the eos_token_id .*, in place of ids of tokens"):
        opened(tmp_path)


CALL_LOOP = (
    user("Where is the theatre in Malmö?"),
    function_call("abcdefghi", '{"city": "Malmö"}'),
    call_output("abcdefghi", "They say: there."),
    assistant("There."),
    user("Thanks  å"),
)


@pytest.mark.parametrize("version", ["v7", "v11", "v13"])
@pytest.mark.parametrize("items", [(user("Hello å  there [INST]"),), CALL_LOOP], ids=["question", "call"])
def test_prompts_of_a_tekken_tokenizer_are_those_of_mistral_common(
    tmp_path: Path, version: str, items: tuple[Any, ...]
) -> None:
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    write_files(tmp_path, config_json={"model_type": "mistral"}, tekken_json=tekken_json(version))
    tools = [{"type": "function", "function": {key: WEATHER[key] for key in ("name", "description", "parameters")}}]
    request = ChatCompletionRequest.from_openai([{"role": "system", "content": "Be brief."}, *map(_message, items)], tools)
    expected = MistralTokenizer.from_file(str(tmp_path / "tekken.json")).encode_chat_completion(request)
    assert opened(tmp_path).render(turn(*items, instructions="Be brief.")) == expected.tokens


def test_call_ids_of_this_server_are_shortened_for_mistral(tmp_path: Path) -> None:
    write_files(tmp_path, config_json={"model_type": "mistral"}, tekken_json=tekken_json("v7"))
    long = [{**item, "call_id": f"call_{item['call_id']}"} if "call_id" in item else item for item in CALL_LOOP]
    text = prompt(opened(tmp_path), turn(*long))
    assert "call_abcdefghi" not in text
    assert "They say: there." in text


def _message(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "function_call":
        function = {"name": item["name"], "arguments": item["arguments"]}
        return {"role": "assistant", "tool_calls": [{"id": item["call_id"], "type": "function", "function": function}]}
    if item["type"] == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "name": "get_weather", "content": item["output"]}
    return {"role": item["role"], "content": item["content"][0]["text"]}


DEEPSEEK_TOKENS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>")


@pytest.mark.parametrize(
    ("model_type", "efforts"),
    [
        ("deepseek_v32", ("none", "medium")),
        ("deepseek_v4", ("none", "low", "medium", "xhigh")),
        ("deepseek_v41", ("none", "low", "medium", "max")),
    ],
)
def test_the_encoders_of_vllm_are_told_the_effort(tmp_path: Path, model_type: str, efforts: tuple[str, ...]) -> None:
    write_files(
        tmp_path,
        config_json={"model_type": model_type},
        tokenizer_config_json={"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<｜end▁of▁sentence｜>"},
        tokenizer_json=byte_tokenizer_json(*DEEPSEEK_TOKENS),
    )
    dialect = opened(tmp_path)
    assert dialect.efforts == efforts
    prompts = {effort: prompt(dialect, turn(user("Hi"), effort=effort, tools=())) for effort in (None, *efforts)}
    assert prompts[None] == prompts["medium"]
    assert len(set(prompts.values())) == len(efforts)


@pytest.mark.parametrize("model_type", ["deepseek_v32", "deepseek_v4", "deepseek_v41"])
def test_deepseek_models_without_a_template_get_the_prompts_of_vllm(tmp_path: Path, model_type: str) -> None:
    write_files(
        tmp_path,
        config_json={"model_type": model_type},
        tokenizer_config_json={"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<｜end▁of▁sentence｜>"},
        tokenizer_json=byte_tokenizer_json(*DEEPSEEK_TOKENS),
    )
    dialect = opened(tmp_path)
    text = prompt(dialect, Turn(items=[user("Hi")], today=TODAY, instructions="Be brief.", tools=[WEATHER]))
    assert text.startswith("<｜begin▁of▁sentence｜>")
    assert [each for each in ("Be brief.", "get_weather", "<｜User｜>Hi<｜Assistant｜><think>") if each not in text] == []
    assert prompt(dialect, turn(user("Hi"), effort="none", tools=())).endswith("<｜Assistant｜></think>")
    loop = prompt(dialect, turn(user("Hi"), reasoning("Hm."), assistant("I look."), *CALL_LOOP[1:3]))
    assert [each for each in ("<think>Hm.</think>", "I look.", "Malmö", "They say: there.") if each not in loop] == []
