"""Citations of files in the Markdown of a message: links to the files, or their names alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from django.urls import reverse

# Ids of a citation by its type.
ID_FIELDS: Final = {"container_file_citation": ("container_id", "file_id"), "file_citation": ("file_id",)}
POSITIONS: Final = ("index", "start_index", "end_index")


def file_address(file_id: str) -> str:
    """Return the path of the page that sends the bytes of an uploaded file."""
    return f"{reverse('files')}/{quote(file_id, safe='')}/content"


def with_links(text: str, annotations: object) -> str:
    """Return the Markdown `text` with a link for each citation of a file. Positions count code points. As in markdown/stream.js."""
    shown, at = "", 0
    for start, end, one in _file_citations(annotations):
        shown += text[at:start] + _link(one, text[:start])
        at = max(at, end)
    return shown + text[at:]


def with_names(text: str, annotations: object) -> str:
    """Return the Markdown `text` with the name of each cited file. A link to a file becomes the text of the link."""
    shown, at = "", 0
    for start, end, one in _file_citations(annotations):
        shown += text[at:start]
        at = max(at, end)
        before, opened, label = shown.rpartition("[")
        if one["type"] == "file_citation":
            shown += f" ({_label(one)})"
        elif opened and label.endswith("]("):
            shown = before.removesuffix("!") + label.removesuffix("](")
            at += text[at : at + 1] == ")"
        else:
            shown += _label(one)
    return shown + text[at:]


def _file_citations(annotations: object) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Return start, end and annotation of the citations of files in their order, each file once at a position."""
    cited = [one for one in annotations if _is_citation(one)] if isinstance(annotations, Sequence) else []
    unique = {(*_span(one), one["file_id"]): one for one in cited}
    return sorted(((start, end, one) for (start, end, _), one in unique.items()), key=lambda citation: citation[0])


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
    if annotation["type"] == "file_citation":
        return f" ([{_label(annotation)}]({file_address(annotation['file_id'])}))"
    file = quote(annotation["file_id"], safe="")
    url = f"{reverse('containers')}/{quote(annotation['container_id'], safe='')}/files/{file}/content"
    # Within a Markdown link the address takes the place of the path; a path alone becomes a link.
    return url if before.endswith("](") else f"[{_label(annotation)}]({url})"


def _label(annotation: Mapping[str, Any]) -> str:
    name = re.sub(r"[\[\]\n]", " ", str(annotation.get("filename")))
    return re.sub(r"([\\`*_~])", r"\\\1", name)
