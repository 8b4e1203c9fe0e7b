"""Shown values of calls of the code interpreter: the code, the logs and the pictures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeAlias

from responses_app.web.render.result_pictures import ResultPicture, code_image

Item: TypeAlias = Mapping[str, Any]


def _code(item: Item) -> Iterator[Any]:
    positions = count()
    yield item.get("code") or ""
    for output in item.get("outputs") or ():
        if code_image(output) is not None:
            yield ResultPicture(next(positions))
        else:
            yield output.get("logs") or output.get("url") or output if isinstance(output, Mapping) else output


KINDS: Final[Mapping[str, Callable[[Item], Iterator[Any]]]] = {"code_interpreter_call": _code}
