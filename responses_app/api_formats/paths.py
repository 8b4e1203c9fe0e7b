"""JSON paths of a request in two formats, so that an error names the path that the client has sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType
from typing import TypeAlias

from responses_app.errors import ApiError

# Step of a path, with the separator: a name as `.name`, or an index as `[0]`.
_STEP = re.compile(r"[.\[][^.\[]*|[^.\[]+")
Steps: TypeAlias = tuple[str, ...]


class RequestPaths:
    """Paths of a translated request.

    `items` has the path of each input item in the request of the client, `parts` of each part of an item, by the indexes of both,
    and `tools` of each tool, where these paths are others. `fields` has the names of the other parameters, and `inside` the names
    of keys in items, wherever they stand in the rest of a path.
    `inside_tools` has the names of keys of tools, and `words` the words of messages that are others in the API format.
    """

    def __init__(
        self,
        fields: Mapping[str, str],
        inside: Mapping[str, str],
        inside_tools: Mapping[str, str] = MappingProxyType({}),
        words: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.items: Sequence[str] = ()
        self.parts: Mapping[tuple[int, int], str] = {}
        self.tools: Sequence[str] = ()
        self._fields, self._inside, self._inside_tools, self._words = fields, inside, inside_tools, words

    def translate(self, path: str) -> str:
        """Return the path in the request of the client."""
        steps = _split(path)
        number, key = _index(steps[1:2]), steps[2:]
        if steps[:1] == ("input",) and 0 <= number < len(self.items):
            part = number, _index(key[1:2])
            if key[:1] in ((".content",), (".output",)) and part in self.parts:
                return self.parts[part] + _rename_all(key[2:], self._inside)
            return self.items[number] + _rename_all(key, self._inside)
        if steps[:1] == ("tools",) and 0 <= number < len(self.tools):
            return self.tools[number] + _rename_first(key, self._inside_tools)
        return _rename_first(steps, self._fields)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the path of an ApiError, in its `param` and its message. An unknown model is 404, as in both other APIs."""
        try:
            yield
        except ApiError as error:
            if error.param:
                path = self.translate(error.param)
                error.message = error.message.replace(f"'{error.param}'", f"'{path}'")
                error.param = path
            for ours, theirs in self._words.items():
                error.message = error.message.replace(ours, theirs)
            if error.code == "model_not_found" and error.status == HTTPStatus.BAD_REQUEST:
                error.status = HTTPStatus.NOT_FOUND
            raise


def _split(path: str) -> Steps:
    return tuple(_STEP.findall(path))


def _index(steps: Steps) -> int:
    """Return the index that `steps` consist of; -1 for other steps."""
    return int(steps[0][1:-1]) if steps and re.fullmatch(r"\[\d+\]", steps[0]) else -1


def _by_steps(names: Mapping[str, str]) -> Mapping[Steps, str]:
    """Return names by their steps. Only an error needs these, so a request does not split its names."""
    return {_split(ours): theirs for ours, theirs in names.items()}


def _rename_first(steps: Steps, names: Mapping[str, str]) -> str:
    """Return the path of `steps` with the first of `names` that the path begins with replaced."""
    for ours, theirs in _by_steps(names).items():
        if steps[: len(ours)] == ours:
            return theirs + "".join(steps[len(ours) :])
    return "".join(steps)


def _rename_all(steps: Steps, names: Mapping[str, str]) -> str:
    """Return the path of `steps` with each of `names` replaced, anywhere in the path."""
    path, place, by_steps = "", 0, _by_steps(names)
    while place < len(steps):
        ours = next((one for one in by_steps if steps[place : place + len(one)] == one), steps[place : place + 1])
        path += by_steps.get(ours, "".join(ours))
        place += len(ours)
    return path
