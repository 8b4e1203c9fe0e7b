"""Page of the served models: family, context, abilities and state of each, and the command that started the server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache

from responses_app.connect.served import model_facts
from responses_app.demo.build import FOLDERS
from responses_app.dialects.families.detection import Detection
from responses_app.installation.data_dir import SERVE
from responses_app.runs import manager
from responses_app.runs.models import ServedModel

# Command that serves a model of the hub; shown where the demo models alone are served.
REAL_MODEL_COMMAND = f"{SERVE} --model Qwen/Qwen3-0.6B"


@dataclass(frozen=True, slots=True)
class ModelRow:
    """Model as the page shows it. `context` is 0 while the engine is away; `percent` is set during a download."""

    name: str
    state: str
    percent: int | None
    family: Detection | None
    context: int
    abilities: str
    # Base model of a LoRA adapter, else empty.
    base: str = ""
    # Sampling defaults in words.
    defaults: str = ""
    warnings: Sequence[str] = ()

    @property
    def is_ready(self) -> bool:
        """Return True if requests are answered."""
        return self.state == "ready"


@never_cache
async def show(request: HttpRequest) -> HttpResponse:
    """Render GET /models."""
    models = list(manager.current().served.values())
    rows = [await _row(model) for model in models]
    context = {
        "section": "models",
        "rows": rows,
        # The page of models that are all ready stays as it is.
        "refresh_s": 2 if manager.current().opening else 0 if all(row.is_ready for row in rows) else 5,
        "command": settings.RESPONSES_SERVE_COMMAND,
        "real_model_command": real_model_command(models),
    }
    # Rendering queries the session and the user, which must not block the event loop.
    return await sync_to_async(render)(request, "web/models.html", context)


async def state(model: ServedModel) -> str:
    """Return `downloading 40 %`, `loading`, `ready` or `away`."""
    percent = _percent(model)
    if percent is not None:
        return f"downloading {percent} %"
    if manager.current().opening:
        return "loading"
    return "ready" if await model.engine.is_healthy() else "away"


def real_model_command(models: Iterable[ServedModel]) -> str:
    """Return the command that serves a model of the hub if all models are demo models, else an empty text."""
    return REAL_MODEL_COMMAND if all(Path(model.source).name in FOLDERS for model in models) else ""


def _percent(model: ServedModel) -> int | None:
    """Return how much is downloaded, None without a download."""
    percent = model.downloaded() if model.downloaded is not None and manager.current().opening else 100
    return percent if percent < 100 else None


async def _row(model: ServedModel) -> ModelRow:
    facts = model_facts(model.name, model)
    abilities = {
        "tools": model.family is not None and model.family.tool_parser is not None,
        "reasoning": model.family is not None and model.family.reasoning_parser is not None,
        "images": facts.supports_images,
    }
    works = ["text", *(name for name, has in abilities.items() if has)]
    return ModelRow(
        model.name,
        await state(model),
        _percent(model),
        model.family,
        facts.context_window,
        ", ".join(works),
        model.parent,
        f"Defaults of requests: {model.defaults.summary()}",
        [*(model.family.warnings if model.family else ()), *filter(None, [model.defaults.warning])],
    )
