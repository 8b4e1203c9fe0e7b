"""Sources that a generated text can cite: pages of the web, uploaded files, and files of a container."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

Json: TypeAlias = Mapping[str, Any]
SANDBOX = "sandbox:"


@dataclass(frozen=True, slots=True)
class WebSource:
    """Page of the web."""

    url: str
    title: str = ""

    @property
    def domain(self) -> str:
        """Host of the address without `www.`; the whole address without a host."""
        try:
            host = urlsplit(self.url).hostname
        except ValueError:
            host = None
        return (host or self.url).removeprefix("www.")

    def annotation(self, start: int, end: int) -> Json:
        """Return the `url_citation` for the text from `start` to `end`, which is exclusive."""
        title = self.title or self.domain
        return {"type": "url_citation", "url": self.url, "title": title, "start_index": start, "end_index": end}


@dataclass(frozen=True, slots=True)
class UploadedFileSource:
    """Uploaded file."""

    file_id: str
    filename: str

    def annotation(self, index: int) -> Json:
        """Return the `file_citation` at the position `index`."""
        return {"type": "file_citation", "file_id": self.file_id, "filename": self.filename, "index": index}


@dataclass(frozen=True, slots=True)
class ContainerFileSource:
    """File of a container."""

    container_id: str
    file_id: str
    filename: str

    def annotation(self, start: int, end: int) -> Json:
        """Return the `container_file_citation` for the text from `start` to `end`, which is exclusive."""
        file = {"container_id": self.container_id, "file_id": self.file_id, "filename": self.filename}
        return {"type": "container_file_citation", **file, "start_index": start, "end_index": end}


@dataclass(frozen=True, slots=True)
class DisplaySources:
    """Numbered text that the model has read. `sources` has the pages with the first line of each, in order."""

    sources: Sequence[tuple[int, WebSource]]

    def at_line(self, line: int) -> WebSource | None:
        """Return the page that the line belongs to: the last page that begins at or before the line."""
        sources_before = [source for first, source in self.sources if first <= line]
        return sources_before[-1] if sources_before else None


@dataclass(frozen=True, slots=True)
class Sources:
    """Sources that a text can cite.

    `pages` are cited by Markdown links with their address, `displays` by the marker `【number†L1-L5】` of gpt-oss, `files` by the
    marker `【number†name】`, and `container_files` by `sandbox:` and the path, such as `/mnt/data/plot.png`.
    """

    pages: Sequence[WebSource] = ()
    displays: Mapping[int, DisplaySources] = field(default_factory=dict)
    files: Mapping[int, UploadedFileSource] = field(default_factory=dict)
    container_files: Mapping[str, ContainerFileSource] = field(default_factory=dict)

    def joined(self, other: Sources) -> Sources:
        """Return the sources of both; `other` wins where both have the same number or path."""
        return Sources(
            [*self.pages, *other.pages],
            {**self.displays, **other.displays},
            {**self.files, **other.files},
            {**self.container_files, **other.container_files},
        )

    def pages_by_url(self) -> dict[str, WebSource]:
        """Return the pages of links and of displays by the comparable form of the address. The newest title counts."""
        shown = [source for display in self.displays.values() for _, source in display.sources]
        return {comparable_url(source.url): source for source in [*shown, *self.pages]}

    def paths(self) -> dict[str, ContainerFileSource]:
        """Return the files of containers by their text in links: the path as it is, and percent-encoded."""
        files = self.container_files
        return {SANDBOX + form: file for path, file in files.items() for form in (path, quote(path))}


def comparable_url(url: str) -> str:
    """Return the form in which addresses are compared: without fragment, final slash and the parameter `utm_source`."""
    address = unescape(url).partition("#")[0]
    path, mark, query = address.partition("?")
    left = "&".join(one for one in query.split("&") if one and not one.startswith("utm_source="))
    return f"{path.rstrip('/')}{mark if left else ''}{left}"
