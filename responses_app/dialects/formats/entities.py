"""Entities of XML in arguments, for models that write `<` and `&` as `&lt;` and `&amp;`."""

from __future__ import annotations

import re

# Characters as the inside of a JSON string.
_TEXTS = {"lt": "<", "gt": ">", "amp": "&", "quot": '\\"', "apos": "'", "#34": '\\"', "#39": "'", "#x27": "'"}
_ENTITY = re.compile(rf"&({'|'.join(_TEXTS)});")
_BEGINNING = re.compile(
    rf"&(?:{'|'.join(sorted({name[:size] for name in _TEXTS for size in range(len(name) + 1)}, reverse=True))})\Z"
)


class EntityDecoder:
    """Decodes entities in JSON that grows. Text that may be the beginning of an entity is held back."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text decoded so far."""
        text = self._held + text
        beginning = _BEGINNING.search(text)
        self._held = beginning[0] if beginning else ""
        return _ENTITY.sub(lambda entity: _TEXTS[entity[1]], text.removesuffix(self._held))

    def flush(self) -> str:
        """Return the text held back."""
        held, self._held = self._held, ""
        return held
