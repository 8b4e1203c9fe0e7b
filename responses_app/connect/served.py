"""Facts of a model that this process serves."""

from __future__ import annotations

from responses_app.connect.facts import ModelFacts
from responses_app.runs.models import ServedModel


def model_facts(name: str, served: ServedModel) -> ModelFacts:
    """Return the facts that the configuration of a client needs."""
    return ModelFacts(name, served.context_window or 0, served.efforts, served.may_take_images)
