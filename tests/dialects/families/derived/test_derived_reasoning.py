"""Reasoning and answers in a form that no declared family has, read as the template writes them."""

from __future__ import annotations

import pytest

from responses_app.dialects.families.detection import ReadBack
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.parser_driver import CHATML

# Texts around reasoning and around an answer.
REASONING_FORMS = {
    "answer_in_tags": ("<scratchpad>", "</scratchpad>", "<final>\n", "\n</final>"),
    "channels": ("<|channel|>idea<|text|>", "<|stop|>", "<|channel|>reply<|text|>", ""),
    "phrases": ("Thought: ", "\n", "Final answer: ", ""),
}


@pytest.mark.parametrize("name", REASONING_FORMS)
def test_reasoning_and_answer_of_a_new_form_are_read(name: str) -> None:
    begin, end, answer_begin, answer_end = REASONING_FORMS[name]
    answer = f"{{{{- {answer_begin!r} + message.content + {answer_end!r} if message.content and message.role == 'assistant'"
    answer += " else message.content }}"
    template = CHATML.replace("'<think>\n'", repr(begin)).replace("'\n</think>\n\n'", repr(end))
    choice = choose_for(template.replace("{{- message.content }}", answer), model_type="new_model")
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")
    assert choice.detection.warnings == ()
    thought, text = "An idea.", "An answer."
    answer_text = f"{answer_begin}{text}{answer_end}"
    for output, items in (
        (f"{begin}{thought}{end}{answer_text}", (("reasoning", thought), ("text", text))),
        (answer_text, (("text", text),)),
    ):
        assert read_by_letters(choice.output, OutputCase("turn", output, items)) == list(items)


@pytest.mark.parametrize(
    ("begin", "end", "text"),
    [
        ("```reasoning\n", "\n```\n", "```py\nx = 1\n```\nDone."),
        ("<!-- ", " -->", "a --> b"),
        ("Thought: ", "\nFinal: ", "I see. Final: 42"),
    ],
)
def test_an_end_of_reasoning_that_may_be_text_stays_in_the_answer(begin: str, end: str, text: str) -> None:
    template = CHATML.replace("'<think>\n'", repr(begin)).replace("'\n</think>\n\n'", repr(end))
    choice = choose_for(template, model_type="new_model")
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")
    thought = ("reasoning", "Hm.")
    for output, items in ((text, (("text", text),)), (f"{begin}Hm.{end}{text}", (thought, ("text", text)))):
        assert read_by_letters(choice.output, OutputCase("turn", output, items)) == list(items)


def test_markers_that_contain_the_beginning_of_a_call_are_read_letter_by_letter() -> None:
    call = """'[{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}]'"""
    template = CHATML.replace(ONE_CALL, call).replace("<think>", "<[idea]>").replace("</think>", "<[idea_end]>")
    choice = choose_for(template, model_type="new_model")
    assert (choice.detection.calls, choice.detection.reasoning) == (ReadBack.EQUAL, ReadBack.EQUAL)
    assert choice.detection.warnings == ()
    output = '<[idea]>\nHm [1].\n<[idea_end]>\n\nSo: <[1, 2]>\n[{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
    items = (("reasoning", "Hm [1]."), ("text", "So: <[1, 2]>"), ("call", "get_weather", {"city": "Oslo"}))
    assert read_by_letters(choice.output, OutputCase("turn", output, items)) == list(items)


def test_reasoning_that_the_prompt_opens_and_the_history_does_not_is_read() -> None:
    template = CHATML.replace("'<think>\n'", "''").replace("'\n</think>\n\n'", "'</reason>\n'")
    choice = choose_for(template.replace("{{- '<|im_start|>assistant\n' }}", "{{- '<|im_start|>assistant\n<reason>\n' }}"))
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.reasoning is not None
    assert choice.output.reasoning.begins == ("<reason>",)


def test_reasoning_that_a_prompt_without_reasoning_closes_is_read() -> None:
    template = CHATML.replace("<think>", "<reason>").replace("</think>", "</reason>")
    closed = template.replace("{{- '<|im_start|>assistant\n' }}", "{{- '<|im_start|>assistant\n<reason></reason>' }}")
    choice = choose_for(closed)
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")


def test_a_template_that_takes_no_answer_at_the_end_is_checked_with_a_further_question() -> None:
    # The marker of the answer ends the reasoning.
    refusal = "{%- if messages[-1].role == 'assistant' %}{{ raise_exception('The last message is an answer.') }}{%- endif %}"
    answer = "{{- ('<|out|>\n' if message.role == 'assistant' and message.content else '') + message.content }}"
    template = refusal + CHATML.replace("{{- message.content }}", answer).replace("'\n</think>\n\n'", "'\n'")
    template = template.replace("'<think>\n'", "'<|idea|>\n'").replace("<tool_call>", "<|act|>").replace("\n</tool_call>", "")
    choice = choose_for(template, "<|idea|>", "<|out|>", "<|act|>", model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert (choice.detection.reasoning, choice.detection.reasoning_parser) == (ReadBack.EQUAL, "template")
    assert choice.detection.warnings == ()
    output, items = "<|idea|>\nHm.\n<|out|>\nYes.", [("reasoning", "Hm."), ("text", "Yes.")]
    assert read_by_letters(choice.output, OutputCase("turn", output, tuple(items))) == items
