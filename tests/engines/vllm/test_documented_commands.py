"""Commands of `vllm serve` in the documents, read by vLLM's own parser."""

from __future__ import annotations

import re
import shlex

import pytest

from responses_app.installation.data_dir import ROOT

COMMAND = re.compile(r"vllm serve (?=\S+ (?:-|\\\n))((?:.*\\\n)*.*)")
PAGES = ("deploy.md", "gpus.md")
WORDS = [
    pytest.param(shlex.split(command.replace("\\\n", " ").removesuffix("&")), id=f"{page} {number}")
    for page in PAGES
    for number, command in enumerate(COMMAND.findall((ROOT / "docs" / "operations" / page).read_text()))
]


def test_pages_have_commands() -> None:
    assert {str(parameters.id).split()[0] for parameters in WORDS} == set(PAGES)


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # torch warns at its import.
@pytest.mark.parametrize("words", WORDS)
def test_options_are_those_of_vllm(words: list[str]) -> None:
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    arguments = make_arg_parser(FlexibleArgumentParser(exit_on_error=False)).parse_args(
        [word.replace("$n", "0") for word in words]
    )
    validate_parsed_serve_args(arguments)
    assert arguments.headless or arguments.enable_scale_out
