"""Documents of a context: the `input_file` parts of the items, and their replacement by the texts of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from responses_app.dialects.base import UnsupportedInput
from responses_app.store.content.images import ImageBytes

Item: TypeAlias = Mapping[str, Any]

FILE: Final = "input_file"
SOURCES: Final = ("file_id", "file_data", "file_url")
# Key of a text among the images of an item; no URL of an image begins so.
KEY_PREFIX: Final = "text:"


@dataclass(frozen=True, slots=True)
class Document:
    """Part `input_file` of an item, with the JSON path as in `input[0].content[1]`."""

    item: str
    path: str
    place: str
    part: Item

    @property
    def key(self) -> tuple[str, str]:
        """Key of the text among the images of the context."""
        return self.item, f"{KEY_PREFIX}{self.place}"

    @property
    def source(self) -> str:
        """Name of the field with the file."""
        return next(name for name in SOURCES if name in self.part)


def iter_documents(items: Sequence[Item]) -> Iterator[Document]:
    """Yield all files of a context."""
    for index, item in enumerate(items):
        key = "output" if "output" in item else "content"
        content = item.get(key)
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and part.get("type") == FILE:
                place = f"{key}[{at}]"
                yield Document(str(item.get("id")), f"input[{index}].{place}", place, part)


def with_texts(items: Sequence[Item], texts: ImageBytes) -> Sequence[Item]:
    """Return the items with each file replaced by the text. Raises UnsupportedInput for a text that is not stored."""
    blocks: dict[int, dict[str, str]] = {}
    for document in iter_documents(items):
        text = texts.get(document.key)
        if text is None:
            raise UnsupportedInput("The text of the file is not stored any more.", document.path, "file_not_found")
        index = int(document.path[len("input[") :].partition("]")[0])
        blocks.setdefault(index, {})[document.place] = text.decode()
    return (
        [_with_blocks(item, blocks[index]) if index in blocks else item for index, item in enumerate(items)]
        if blocks
        else items
    )


def _with_blocks(item: Item, blocks: Mapping[str, str]) -> Item:
    key = "output" if "output" in item else "content"
    parts = [
        {"type": "input_text", "text": blocks[f"{key}[{at}]"]} if f"{key}[{at}]" in blocks else part
        for at, part in enumerate(item[key])
    ]
    return {**item, key: parts}
