"""Choice of the output format: what the chat template writes is read back, and calls of an unknown form stay whole."""

from __future__ import annotations

import dataclasses
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import Detection, Evidence, ReadBack, detect
from responses_app.dialects.families.format_choice import FormatChoice, choose_format
from responses_app.dialects.families.unread_output import SpecialTokens
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.variants import fit_to_tokens
from responses_app.dialects.registry import open_checkpoint
from responses_app.protocol.deltas import Call, ReasoningDelta, TextDelta
from tests.support.dialects.families.cases import OutputCase, cases
from tests.support.dialects.families.checkpoint_folder import write_checkpoint
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.families.family_format import FamilyFormat
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.parser_driver import CHATML, WEATHER, parse_chunks, problems_of, turn

OSLO = ("get_weather", {"city": "Oslo"})
# Families whose calls have a form that cannot be derived: names of parameters as elements, and a word as the marker.
UNREAD = {"minimax-m3", "phi-4-mini"}


def tokens_of(family: FamilyFormat) -> frozenset[str]:
    return frozenset(filter(None, (family.bos, family.eos, *family.special, *family.unlisted)))


def choose(family: FamilyFormat) -> tuple[Detection, FormatChoice]:
    special, added = tokens_of(family), {*tokens_of(family), *family.plain}
    detection = detect(Evidence(model_type=family.model_type, templates=[family.template], added_tokens=added))
    template = ChatTemplate(family.template, {"bos_token": family.bos, "eos_token": family.eos})
    fit = partial(fit_to_tokens, added_tokens=added)
    return detection, choose_format(template, detection, SpecialTokens(special, frozenset({family.eos})), fit)


def renamed(value: Any, markers: list[str]) -> Any:
    """Rename markers in texts, and in the texts of tuples."""
    if isinstance(value, tuple | list):
        return tuple(renamed(each, markers) for each in value)
    if isinstance(value, str):
        for marker in markers:
            value = value.replace(marker, f"{marker[0]}other_{marker[1:]}")
    return value


def with_other_calls(family: FamilyFormat, output: OutputFormat) -> FamilyFormat | None:
    """Return the family with other markers of calls, None if its calls have no markers."""
    assert output.calls is not None
    known_markers = {*output.ignored, *(output.reasoning.begins + output.reasoning.ends if output.reasoning else ())}
    texts = {*output.calls.begins, *output.calls.ends, *output.calls.syntax.markers} - known_markers
    markers = sorted((text for text in texts if len(text) > 2 and text in family.template), key=len, reverse=True)
    # A marker that is renamed with a longer one is not renamed again.
    markers = [each for each in markers if not any(each != other and each in other for other in markers)]
    fields = {field.name: renamed(getattr(family, field.name), markers) for field in dataclasses.fields(family)}
    return FamilyFormat(**{**fields, "name": family.name, "model_type": "other"}) if markers else None


@cache
def chosen(name: str) -> tuple[Detection, FormatChoice]:
    return choose(FAMILIES[name])


@pytest.mark.parametrize("name", FAMILIES)
def test_detected_format_reads_what_the_template_of_a_family_writes(name: str) -> None:
    family = FAMILIES[name]
    detection, choice = chosen(name)
    assert choice.detection.warnings == ()
    assert (choice.detection.reasoning_parser, choice.detection.tool_parser) == (
        detection.reasoning_parser,
        detection.tool_parser,
    )
    assert choice.detection.chosen_by == detection.chosen_by
    assert choice.output.keeps_markers is (detection.tool_parser is None)
    assert not choice.output.unknown_calls
    writes_calls = bool(family.has_calls and family.tools)
    assert choice.detection.calls is (ReadBack.EQUAL if writes_calls else ReadBack.NOT_WRITTEN)
    writes_reasoning = family.history is not None or family.reasoning is not None
    assert choice.detection.reasoning is (ReadBack.EQUAL if writes_reasoning else ReadBack.NOT_WRITTEN)


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.has_calls and family.tools])
def test_calls_with_other_markers_are_read_in_the_form_that_the_template_writes(name: str) -> None:
    other = with_other_calls(FAMILIES[name], chosen(name)[1].output)
    if other is None:  # calls without markers have nothing to rename
        assert chosen(name)[1].output.calls.leads  # type: ignore[union-attr]
        return
    choice = choose(other)[1]
    if name in UNREAD:
        assert choice.detection.calls is ReadBack.DIFFERENT
        assert any("calls of this model will be shown as text" in warning for warning in choice.detection.warnings)
        assert choice.output.keeps_markers
        written = other.write_calls([OSLO])
        assert {token for token in tokens_of(other) if token in written} <= {*choice.output.markers, other.eos}
        return
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.detection.chosen_by == "reading what the chat template writes"
    assert choice.detection.warnings == ()
    for case in cases(other):
        if not case.is_quiet:
            assert read_by_letters(choice.output, case) == list(case.expected), case.name


def shown(family: FamilyFormat) -> FamilyFormat:
    """Return the family with calls of a form that cannot be derived: the name stands behind the arguments."""
    call = "{{- '<|act|>' + call.function.arguments | tojson + '<|of|>' + call.function.name + '<|done|>' }}"
    special = (*family.special, "<|act|>", "<|of|>", "<|done|>")
    tools = "{{- tools | tojson }}"
    return dataclasses.replace(family, model_type="other", tools=tools, call=call, calls=("", "", ""), special=special)


@pytest.mark.engine
@pytest.mark.parametrize("name", ["hermes-2-pro", "deepseek-v3.1", "qwen3-coder"])
@pytest.mark.filterwarnings("ignore")
def test_text_of_an_unknown_call_is_whole_and_is_a_problem(name: str, tmp_path: Path) -> None:
    other = shown(FAMILIES[name])
    dialect, family = open_checkpoint(*opened(other, tmp_path))
    assert isinstance(dialect, ChatDialect)
    assert any("calls of this model will be shown as text" in warning for warning in family.warnings)
    call = other.write_calls([OSLO])
    tokens = dialect.vocabulary.encode(call + other.eos)
    asked = turn(tools=(WEATHER,), effort="none")
    whole, single = (parse_chunks(dialect, asked, tokens, sizes, problems=True) for sizes in ([], [1] * len(tokens)))
    assert "".join(delta.text for delta in single if isinstance(delta, TextDelta | ReasoningDelta)).strip() == call.strip()
    assert not any(isinstance(delta, Call) for delta in single)
    assert whole == single
    assert problems_of(single) == [("unknown_call_form", "")]
    cut = parse_chunks(dialect, asked, tokens[:-1], problems=True)
    assert problems_of(cut) == [("unknown_call_form", "")]
    assert problems_of(parse_chunks(dialect, asked, dialect.vocabulary.encode("Hello."), problems=True)) == []
    without_tools = turn(tools=(), effort="none")
    assert problems_of(parse_chunks(dialect, without_tools, tokens, problems=True)) == []


def opened(family: FamilyFormat, folder: Path) -> tuple[Checkpoint, Detection]:
    checkpoint = Checkpoint(str(write_checkpoint(family, folder)))
    return checkpoint, checkpoint.detect_family()


NEW_CALL = "'<|act|>' + call.function.arguments | tojson + '<|of|>' + call.function.name"


def test_a_template_with_reasoning_and_calls_of_a_new_form_is_not_silent() -> None:
    choice = choose_for(CHATML.replace(ONE_CALL, NEW_CALL), "<|act|>", "<|of|>", model_type="new_model")
    (warning,) = choice.detection.warnings
    assert warning.startswith("The chat template writes calls in a form that no known tool parser reads: calls of this model")
    assert '<|act|>{"place": "markfirst town"}<|of|>get_markplan' in warning
    assert choice.detection.as_json()["read_back"] == {"calls": "different", "reasoning": "equal"}
    assert choice.output.kept == ("<|act|>", "<|of|>")
    assert choice.output.unknown_calls[0].startswith("<|act|>")


def test_reasoning_of_a_new_form_is_read_also_where_calls_are_not() -> None:
    template = CHATML.replace(ONE_CALL, NEW_CALL).replace("'<think>\n'", "'[IDEA]'").replace("'\n</think>\n\n'", "'[/IDEA]'")
    detection = choose_for(template, "<|act|>", "<|of|>", model_type="new_model").detection
    assert (detection.calls, detection.reasoning) == (ReadBack.DIFFERENT, ReadBack.EQUAL)


@pytest.mark.parametrize(("begin", "end"), [("<|begin of idea|>", "<|end of idea|>"), ("◁idea▷\n", "\n◁/idea▷\n")])
def test_reasoning_of_a_new_form_is_read_as_the_template_writes_it(begin: str, end: str) -> None:
    template = CHATML.replace("'<think>\n'", f"'{begin}'").replace("'\n</think>\n\n'", f"'{end}'")
    choice = choose_for(template, begin.strip(), end.strip(), model_type="qwen3")
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")
    assert (choice.detection.tool_parser, choice.detection.warnings) == ("hermes", ())
    assert choice.output.reasoning is not None
    assert (choice.output.reasoning.begins, choice.output.reasoning.ends) == ((begin.strip(),), (end.strip(),))


def test_reasoning_of_a_new_form_that_the_prompt_opens_is_read() -> None:
    template = CHATML.replace("'<think>\n'", "'<|idea|>'").replace("'\n</think>\n\n'", "'<|/idea|>'")
    choice = choose_for(template.replace("{{- '<|im_start|>assistant\n' }}", "{{- '<|im_start|>assistant\n<|idea|>' }}"))
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")


def test_reasoning_that_cannot_be_told_from_the_answer_is_a_warning() -> None:
    template = CHATML.replace("'<think>\n'", "'I: '").replace("'\n</think>\n\n'", "' '")
    choice = choose_for(template, model_type="qwen3")
    assert choice.detection.reasoning is ReadBack.DIFFERENT
    assert any("reasoning of this model will be shown as text" in warning for warning in choice.detection.warnings)


def test_a_stop_inside_a_turn_is_a_warning() -> None:
    reasoning = CHATML.replace("'\n</think>\n\n'", "'<|im_end|><|im_start|>answer\n'").replace("'<think>\n'", "'<|thought|>'")
    calls = CHATML.replace("'\n<tool_call>\n'", "'<|im_end|>\n<tool_call>\n'")
    for template, part in ((reasoning, "reasoning"), (calls, "a call")):
        (warning,) = choose_for(template, "<|thought|>", "<|im_start|>", model_type="qwen3").detection.warnings
        assert f"<|im_end|>, which ends the output of this model, inside a turn with {part}: what stands behind" in warning


def test_tags_around_every_answer_are_no_text() -> None:
    template = CHATML.replace("{{- message.content }}", "{{- '<reply>' + message.content + '</reply>' if message.content }}")
    choice = choose_for(template, model_type="qwen3")
    assert choice.output.ignored == ("<reply>", "</reply>")
    assert choice.output.answer_head is not None


@pytest.mark.parametrize(
    ("opening", "reasoning", "warned"),
    [
        ("<think>", "qwen3", False),
        ("<seed:think>", "seed_oss", False),
        ("<|new_thought|>", None, True),
        ("</think>", None, False),
    ],
)
def test_reasoning_that_only_the_prompt_shows_is_read_or_a_warning(opening: str, reasoning: str | None, warned: bool) -> None:
    template = "{%- for message in messages %}{{ message.content }}{%- endfor %}assistant:" + opening
    choice = choose_for(template, model_type="gemma3")
    assert choice.detection.reasoning_parser == reasoning
    assert [f"The prompt opens reasoning with {opening}" in warning for warning in choice.detection.warnings] == [True] * warned


def test_another_declared_format_that_reads_the_calls_replaces_the_detected_format() -> None:
    template = CHATML + "{# <tool_call> <function=name> <parameter=name> #}"
    choice = choose_for(template, model_type="qwen3_5")
    assert (choice.detection.reasoning_parser, choice.detection.tool_parser) == ("qwen3", "hermes")
    assert choice.detection.chosen_by == "reading what the chat template writes"
    assert choice.detection.warnings == ()


def test_json_between_the_markers_of_python_calls_is_read() -> None:
    # The form of openPangu has the markers of LFM2.
    call = """'<|tool_call_start|>[{"name": "' + call.function.name + '", "arguments": ' """
    template = CHATML.replace(ONE_CALL, f"{call} + call.function.arguments | tojson + '}}]<|tool_call_end|>'")
    choice = choose_for(template, "<|tool_call_start|>", "<|tool_call_end|>", model_type="new_model")
    assert (choice.detection.family, choice.detection.tool_parser) == ("LFM2", "openpangu")
    assert (choice.detection.calls, choice.detection.warnings) == (ReadBack.EQUAL, ())


@pytest.mark.parametrize(("form", "parser"), [("deepseek-v3.1", "deepseek_v31"), ("deepseek-v3-0324", "deepseek_v3")])
def test_written_calls_decide_where_the_template_describes_no_tools(form: str, parser: str) -> None:
    family = dataclasses.replace(FAMILIES[form], model_type="deepseek_v32", tools="")
    detection, choice = choose(family)
    assert (detection.tool_parser, choice.detection.tool_parser) == ("deepseek_v32", parser)
    assert (choice.detection.calls, choice.detection.warnings) == (ReadBack.EQUAL, ())


def test_tokens_around_a_turn_that_the_tokenizer_does_not_name_are_no_part_of_a_call() -> None:
    # The head of the assistant stands in the turn, not at the end of the prompt.
    template = CHATML.replace("'<|im_start|>' + message.role + '\n'", "'<|im_start|>  ' + message.role + '\n'")
    choice = choose_for(template + "{# <function=a> <parameter=b> #}", model_type="qwen3_5")
    assert (choice.detection.tool_parser, choice.detection.calls) == ("hermes", ReadBack.EQUAL)


def test_a_named_parser_stays_and_is_a_warning_if_it_does_not_read_the_calls() -> None:
    choice = choose_for(CHATML, model_type="qwen3", tool_parser="seed_oss")
    assert choice.detection.tool_parser == "seed_oss"
    (warning,) = choice.detection.warnings
    assert "in a form that the tool parser seed_oss does not read: calls of this model will be shown as text" in warning


def test_parsers_that_are_switched_off_are_not_checked() -> None:
    choice = choose_for(CHATML.replace("tool_call>", "new_call>"), reasoning_parser="none", tool_parser="none")
    assert (choice.detection.reasoning_parser, choice.detection.tool_parser) == (None, None)
    assert (choice.detection.calls, choice.detection.reasoning) == (ReadBack.NOT_CHECKED, ReadBack.NOT_CHECKED)
    assert choice.detection.warnings == ()
    assert not choice.output.keeps_markers


def test_arguments_that_the_template_writes_in_python_do_not_lose_the_format() -> None:
    # `{'name': 'Bergen'}` in the place of an object.
    call = """{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": {' }}
{%- for key, value in call.function.arguments.items() %}{{- '"' + key + '": ' }}
{{- value | tojson if value is string else value }}{{- '' if loop.last else ', ' }}{%- endfor %}{{- '}}</tool_call>' }}"""
    choice = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), model_type="qwen3")
    assert (choice.detection.tool_parser, choice.detection.calls) == ("hermes", ReadBack.EQUAL)
    assert (choice.detection.chosen_by, choice.detection.warnings) == ("chat template", ())


def test_calls_of_an_unknown_family_that_are_read_are_no_warning() -> None:
    choice = choose_for(CHATML.replace("<think>", "<|x|>").replace("</think>", "<|y|>"), model_type="new")
    assert choice.detection.tool_parser == "hermes"


def test_a_template_without_tools_is_not_checked_for_calls() -> None:
    choice = choose_for("{%- for message in messages %}{{ message.content }}{%- endfor %}", model_type="llama")
    assert (choice.detection.calls, choice.detection.reasoning) == (ReadBack.NOT_WRITTEN, ReadBack.NOT_WRITTEN)
    (warning,) = choice.detection.warnings
    assert "not recognised" in warning


@pytest.mark.parametrize("template", ["{{ messages[0].content }}", "{{ raise_exception('no') }}"])
def test_tokens_that_seem_to_mark_calls_are_kept_where_no_form_of_calls_is_known(template: str) -> None:
    choice = choose_for(template, "<|tool_call|>", "<|image|>", model_type="new")
    assert choice.output.kept == ("<|tool_call|>",)
    assert choice.output.keeps_markers
    named = choose_for(template, "<|tool_call|>", "<|image|>", model_type="new", tool_parser="hermes")
    assert named.output.kept == ()


def test_tools_without_calls_in_the_template_are_a_warning() -> None:
    template = "<think>{{ tools | tojson }}{%- for message in messages %}{{ message.content }}{%- endfor %}"
    (warning,) = choose_for(template, model_type="new").detection.warnings
    assert "describes tools and writes no calls" in warning


@pytest.mark.parametrize("call", ["", "{%- if message.tool_calls %}{{ raise_exception('No calls.') }}{%- endif %}"])
def test_a_form_of_calls_that_a_marker_alone_suggests_is_a_warning_where_no_call_is_written(call: str) -> None:
    described = "{%- if tools %}{{ tools | tojson }} Answer in <tool_call>.{%- endif %}"
    template = described + "{%- for message in messages %}" + call + "{{ message.content }}{%- endfor %}"
    (warning,) = choose_for(template, model_type="new").detection.warnings
    assert "they are read in the form hermes because of <tool_call>, any other form" in warning
    assert not choose_for(template, model_type="qwen3").detection.warnings
    assert not choose_for(template, name="Qwen3-8B").detection.warnings
    assert not choose_for(template, model_type="new", tool_parser="hermes").detection.warnings
    assert not choose_for(template.replace("{{ tools | tojson }}", ""), model_type="new").detection.warnings


@pytest.mark.parametrize("template", ["{{ raise_exception('no') }}", "{{ 1 / 0 }}"])
def test_an_error_of_the_template_is_a_warning(template: str) -> None:
    choice = choose_for(template, model_type="qwen3")
    (warning,) = choice.detection.warnings
    assert warning.startswith("The chat template cannot be checked (")
    assert choice.detection.tool_parser == "hermes"


@pytest.mark.parametrize("config", ['{"model_type": "gpt_oss"}', '{"architectures": ["GptOssForCausalLM"]}'])
@pytest.mark.parametrize("named", [(None, None), ("hf", None), (None, "beam"), ("hf", "hf")])
def test_gpt_oss_has_a_format_of_its_own(config: str, named: tuple[str | None, str | None], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    checkpoint = Checkpoint(str(tmp_path))
    family = open_checkpoint(checkpoint, checkpoint.detect_family(*named))[1]
    assert (family.reasoning_parser, family.tool_parser) == ("openai_gptoss", "openai")
    assert (family.calls, family.warnings) == (ReadBack.NOT_CHECKED, ())


@pytest.mark.parametrize("opening", ["<ponder>", "[PLAN]", "<|begin|>"])
@pytest.mark.parametrize("in_history", [False, True])
def test_tag_that_only_the_prompt_has_is_a_warning(opening: str, in_history: bool) -> None:
    template = CHATML.partition("{%- if enable_thinking")[0].replace("message.reasoning_content", "false")
    template = template.replace("'<|im_start|>assistant\n'", f"'<|im_start|>assistant\n{opening}'")
    if in_history:
        template = template.replace("message.role + '\n'", f"message.role + '\n{opening}'")
    warnings = choose_for(template, model_type="new_model").detection.warnings
    assert (
        any(
            f"The prompt opens reasoning with {opening}, which the reasoning parser qwen3 does not read" in each
            for each in warnings
        )
        is not in_history
    )


def test_word_between_special_tokens_before_every_answer_is_no_text() -> None:
    head = "<|begin|>final<|end|>"
    answer = f"{{{{- '{head}' + message.content if message.role == 'assistant' and message.content else message.content }}}}"
    output = choose_for(CHATML.replace("{{- message.content }}", answer), "<|begin|>", "<|end|>", model_type="new_model").output
    assert output.ignored == (head,)
    assert output.answer_head is not None
    for text in ("Hi, final.", f"{head}Hi, final."):
        assert read_by_letters(output, OutputCase("answer", text, (("text", "Hi, final."),))) == [("text", "Hi, final.")]
