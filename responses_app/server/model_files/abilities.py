"""Abilities of a model by the small files: family, tools, reasoning, images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from responses_app.server.model_files.architectures import config_warnings


@dataclass(frozen=True, slots=True)
class Abilities:
    """Abilities of a model: the family with the way of its detection, what works, and warnings."""

    family: str = ""
    works: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield lines for a terminal."""
        if self.family:
            yield f"family    {self.family}"
            lacking = f"; without {', '.join(self.lacks)}" if self.lacks else ""
            yield f"works     {', '.join(self.works) or 'text'}{lacking}"
        yield from (f"warning   {warning}" for warning in self.warnings)


def read_abilities(folder: Path, options: Mapping[str, str], config: Mapping[str, Any]) -> Abilities:
    """Read the abilities as `manage.py model` does; `config` is config.json. Raises ValueError, OSError."""
    from responses_app.dialects.report import report

    try:
        model = report(str(folder), options.get("reasoning_parser"), options.get("tool_parser"), options.get("chat_template"))
    except (ValueError, OSError):
        raise
    except Exception as error:  # The files of a model can break the libraries that read the files in any way.
        raise ValueError(
            f"the configuration, the tokenizer or the chat template cannot be opened: {type(error).__name__}: {error}"
        ) from error
    features = model.features
    facts = {
        "tools": features.tools,
        "parallel calls": features.parallel_calls,
        "reasoning": bool(model.family.reasoning_parser),
        "images": features.images,
        "system messages": features.system,
    }
    works, lacks = (tuple(name for name, has in facts.items() if has is value) for value in (True, False))
    return Abilities(model.family.summary(), works, lacks, (*model.family.warnings, *config_warnings(config)))
