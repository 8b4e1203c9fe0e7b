"""Prompts of all families, compared with `apply_chat_template` of transformers on the same checkpoint."""

from __future__ import annotations

import pytest

from tests.support.dialects.families.known_failures import prompt_cases
from tests.support.dialects.families.open_families import OpenFamilies
from tests.support.dialects.families.prompts import PromptCase

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(("family", "case"), prompt_cases())
def test_prompt_is_that_of_transformers(families: OpenFamilies, family: str, case: PromptCase) -> None:
    model = families[family]
    thinking = case.turn.effort != "none"
    theirs = model.tokenizer.apply_chat_template(
        case.messages,
        tools=case.template_tools or None,
        add_generation_prompt=True,
        enable_thinking=thinking,
        thinking=thinking,
        return_dict=False,
    )
    ours = model.dialect.render(case.turn)
    assert model.dialect.token_text(ours) == model.dialect.token_text(theirs)
    assert ours == theirs
