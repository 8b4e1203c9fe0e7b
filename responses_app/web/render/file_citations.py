"""Links for citations of files: downloads of files that code has written, and of uploaded files that were searched."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

# Ids of a citation by its type.
ID_FIELDS: Final = {"container_file_citation": ("container_id", "file_id"), "file_citation": ("file_id",)}
POSITIONS: Final = ("index", "start_index", "end_index")


def with_links(text: str, annotations: object) -> str:
    """Return the Markdown `text` with a link for each citation of a file. Positions count code points."""
    cited = [(*_span(one), one) for one in annotations if _is_citation(one)] if isinstance(annotations, Sequence) else []
    # From the end, so that the positions stay true.
    for start, end, one in sorted(cited, key=lambda citation: citation[0], reverse=True):
        text = text[:start] + _link(one, text[:start]) + text[end:]
    return text


def _is_citation(annotation: object) -> bool:
    """Return True for a whole citation of a file. Annotations that clients have written may have any fields."""
    ids = ID_FIELDS.get(str(annotation.get("type"))) if isinstance(annotation, Mapping) else None
    return bool(
        isinstance(annotation, Mapping)
        and ids
        and all(isinstance(annotation.get(field), str) for field in ids)
        and all(isinstance(annotation.get(field, 0), int) for field in POSITIONS)
    )


def _span(annotation: Mapping[str, Any]) -> tuple[int, int]:
    index = annotation.get("index", 0)
    return annotation.get("start_index", index), annotation.get("end_index", index)


def _link(annotation: Mapping[str, Any], before: str) -> str:
    name = re.sub(r"[\[\]\n]", " ", str(annotation.get("filename")))
    label = re.sub(r"([\\`*_~])", r"\\\1", name)
    file = quote(annotation["file_id"], safe="")
    if annotation["type"] == "file_citation":
        return f" ([{label}](/files/{file}/content))"
    url = f"/containers/{quote(annotation['container_id'], safe='')}/files/{file}/content"
    # Within a Markdown link the address takes the place of the path; a path alone becomes a link.
    return url if before.endswith("](") else f"[{label}]({url})"
