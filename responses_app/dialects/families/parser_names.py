"""Names of the parsers that an operator may choose: the declared formats, and harmony."""

from __future__ import annotations

from responses_app.dialects.formats.table import CALLS, REASONING

# Value of a named parser that switches parsing off.
NO_PARSER = "none"
# Parsers of gpt-oss in vLLM, in place of which the harmony dialect is used.
HARMONY_REASONING_PARSER, HARMONY_TOOL_PARSER = "openai_gptoss", "openai"
# Name of a form that the `response_template` of a checkpoint names, in the place of a parser.
RESPONSE_TEMPLATE = "response_template"
# Other names that vLLM has for a form. `minimax_m2_append_think` leaves the reasoning in the text there, and is read apart here.
ALIASES = {
    "beam": RESPONSE_TEMPLATE,
    "hf": RESPONSE_TEMPLATE,
    "minimax_m2_append_think": "minimax_m2",
    "musespark1x": "muse",
}
REASONING_PARSERS = frozenset({*REASONING, *ALIASES, HARMONY_REASONING_PARSER, RESPONSE_TEMPLATE})
TOOL_PARSERS = frozenset({*CALLS, *ALIASES, HARMONY_TOOL_PARSER, RESPONSE_TEMPLATE})


def check_names(reasoning_parser: str | None, tool_parser: str | None) -> None:
    """Check the parsers that the operator has named. Raises ValueError, which lists the allowed names."""
    for key, name, names in (
        ("reasoning_parser", reasoning_parser, REASONING_PARSERS),
        ("tool_parser", tool_parser, TOOL_PARSERS),
    ):
        if name is not None and name not in {NO_PARSER, *names}:
            raise ValueError(f"{key}={name} is unknown. Allowed: {NO_PARSER}, {', '.join(sorted(names))}.")
