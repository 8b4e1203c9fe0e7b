"""Log lines of engines that stop or begin to answer health checks."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping

from responses_app.observability.events import Observer

logger = logging.getLogger("responses.engines")


class EngineLog(Observer):
    """Observer that logs changes of the only engine of a model. A model with several URLs logs its own."""

    def __init__(self) -> None:
        self._was_up: dict[tuple[str, str], bool] = {}

    def engines_checked(self, states: Mapping[tuple[str, str], bool]) -> None:
        """Log each engine whose state differs from the last check; the first check logs engines that are away."""
        engines = Counter(model for model, _ in states)
        for (model, engine), is_up in states.items():
            if engines[model] > 1 or self._was_up.get((model, engine), True) == is_up:
                continue
            if is_up:
                logger.info("the engine %s of %s answers again", engine, model)
            else:
                logger.warning("the engine %s of %s does not answer; requests get 503, running responses wait", engine, model)
        self._was_up = dict(states)
