"""JSON paths of a request in two formats, so that an error names the path that the client has sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from types import MappingProxyType

from responses_app.errors import ApiError

_ITEM = re.compile(r"input\[(\d+)\](.*)", re.DOTALL)
_PART = re.compile(r"\.(?:content|output)\[(\d+)\](.*)", re.DOTALL)
_TOOL = re.compile(r"tools\[(\d+)\](.*)", re.DOTALL)


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
        if (item := _ITEM.fullmatch(path)) and int(item[1]) < len(self.items):
            number, key = int(item[1]), item[2]
            if (part := _PART.fullmatch(key)) and (number, int(part[1])) in self.parts:
                return self.parts[number, int(part[1])] + self._key(part[2])
            return self.items[number] + self._key(key)
        if (tool := _TOOL.fullmatch(path)) and int(tool[1]) < len(self.tools):
            return self.tools[int(tool[1])] + _rename(tool[2], self._inside_tools)
        return _rename(path, self._fields)

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

    def _key(self, key: str) -> str:
        names = "|".join(map(re.escape, self._inside))
        return re.sub(rf"(?:{names})(?=$|[.\[])", lambda match: self._inside[match[0]], key)


def _rename(path: str, names: Mapping[str, str]) -> str:
    """Return `path` with the first of `names` that the path begins with replaced."""
    for ours, theirs in names.items():
        if path == ours or path.startswith((f"{ours}.", f"{ours}[")):
            return theirs + path[len(ours) :]
    return path
