"""Parts of calls of the code interpreter, of web searches and of file searches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeAlias

from responses_app.tools.code_interpreter.results import raised_error
from responses_app.web.render.block_parts import BlockPart, page_part, picture_part, text_part
from responses_app.web.render.result_pictures import code_image
from responses_app.web.render.sanitize import visible

Item: TypeAlias = Mapping[str, Any]
ENDED: Final = "completed"


def _code(item: Item) -> Iterator[BlockPart]:
    positions = count()
    yield text_part(item.get("code") or "", "Code")
    for output in item.get("outputs") or ():
        url = code_image(output)
        if url is not None:
            yield picture_part(next(positions), url)
        else:
            yield text_part(output.get("logs") or output.get("url") or output if isinstance(output, Mapping) else output)


def raised_in_code(item: Item, model_text: str) -> str:
    """Return the name of the exception that ended the code of a call; empty without one.

    `model_text` is the stored text for the model, which the item shows only on request.
    """
    if item.get("type") != "code_interpreter_call" or item.get("status") != ENDED:
        return ""
    outputs = [output for output in item.get("outputs") or () if isinstance(output, Mapping)]
    return raised_error(next((str(output["logs"]) for output in outputs if output.get("logs")), model_text))


def _web_search(item: Item) -> Iterator[BlockPart]:
    given_action = item.get("action")
    action: Item = given_action if isinstance(given_action, Mapping) else {}
    if query := action.get("pattern") or action.get("query"):
        yield text_part(query, "Query")
    found = item.get("results") or action.get("sources") or ([action] if action.get("url") else [])
    pages = [page for page in found if isinstance(page, Mapping) and page.get("url")]
    if pages:
        yield page_part(pages)
    elif action.get("type") == "search" and item.get("status") == ENDED and ("results" in item or "sources" in action):
        yield BlockPart(note="No pages.")


def _file_search(item: Item) -> Iterator[BlockPart]:
    if queries := item.get("queries"):
        yield text_part("\n".join(map(str, queries)), "Query")
    results = [result for result in item.get("results") or () if isinstance(result, Mapping)]
    for result in results:
        yield text_part(str(result.get("text") or ""), heading=visible(str(result.get("filename") or "")[:200]))
    if not results and item.get("results") is not None and item.get("status") == ENDED:
        yield BlockPart(note="No passages.")


KINDS: Final[Mapping[str, Callable[[Item], Iterator[BlockPart]]]] = {
    "code_interpreter_call": _code,
    "web_search_call": _web_search,
    "file_search_call": _file_search,
}
