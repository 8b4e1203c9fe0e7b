"""Models in the form that Codex reads from `GET /v1/models?client_version=…` or from a catalog file.

Codex refuses a list in which a model lacks a required key, and falls back to metadata that fit no model of this server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from responses_app.connect.facts import ModelFacts

INSTRUCTIONS: Final = """You are a coding agent in the user's terminal. You share a folder of files with the user.

- Read before you change: search with `rg`, open the files that matter, and follow the instructions of the project.
- Do what the user asks, and no more. Keep the style of the code around a change.
- Change files with `apply_patch`. Its input begins with `*** Begin Patch` and ends with `*** End Patch`; between are
  `*** Add File: PATH`, `*** Update File: PATH` or `*** Delete File: PATH`. Lines of an update begin with a blank, `-` or `+`.
- Run commands that do not depend on each other in parallel. Run the tests that cover a change.
- Never undo changes that you have not made, and ask before you delete anything that cannot be made again.
- End with a short answer: what you have done, what you have checked, and what is left."""
EFFORTS: Final = {
    "none": "Answers at once",
    "minimal": "Reasons as little as possible",
    "low": "Reasons briefly",
    "medium": "Reasons before the answer",
    "high": "Reasons longer, for hard problems",
    "xhigh": "Reasons very long",
    "max": "Reasons as long as the model can",
}
# Longest output of a command that Codex shows the model, as a share of the context window, and at most.
OUTPUT_SHARE: Final = 8
MAX_COMMAND_OUTPUT: Final = 10_000


def codex_model(facts: ModelFacts, priority: int = 1) -> dict[str, Any]:
    """Return the metadata of a model. `priority` is the place in Codex's list of models."""
    return {
        "slug": facts.name,
        "display_name": facts.name,
        "description": "Served by Verbatim",
        "default_reasoning_level": facts.default_effort,
        "supported_reasoning_levels": [{"effort": effort, "description": EFFORTS[effort]} for effort in facts.efforts],
        "supports_reasoning_summaries": bool(facts.efforts),
        "supports_reasoning_summary_parameter": bool(facts.efforts),
        "default_reasoning_summary": "auto" if facts.efforts else "none",
        "shell_type": "shell_command",
        "apply_patch_tool_type": "freeform",
        "supports_parallel_tool_calls": True,
        "experimental_supported_tools": [],
        "truncation_policy": {"mode": "tokens", "limit": _command_output(facts)},
        "context_window": facts.context_window or None,
        "max_context_window": facts.context_window or None,
        "auto_compact_token_limit": None,
        "input_modalities": facts.modalities,
        "supports_image_detail_original": False,
        "supports_search_tool": False,
        "support_verbosity": False,
        "default_verbosity": None,
        "prefer_websockets": True,
        "visibility": "list",
        "supported_in_api": True,
        "priority": priority,
        "availability_nux": None,
        "upgrade": None,
        "base_instructions": INSTRUCTIONS,
    }


def codex_models(models: Sequence[ModelFacts]) -> list[dict[str, Any]]:
    """Return the metadata of all models, in order."""
    return [codex_model(facts, priority) for priority, facts in enumerate(models, 1)]


def _command_output(facts: ModelFacts) -> int:
    """Return the most tokens of a command's output; the context of a model that is not loaded yet is not known."""
    return max(1, min(MAX_COMMAND_OUTPUT, facts.context_window // OUTPUT_SHARE)) if facts.context_window else MAX_COMMAND_OUTPUT
