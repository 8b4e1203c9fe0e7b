"""Folder of pages: a search back end for tests, for the demo, and for machines without a network."""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote, urldefrag

from responses_app.extraction.formats.html_markdown import html_to_markdown
from responses_app.tools.web_search.backends.base import PageMissing, SearchContext, SearchResult

MEDIA_TYPES = {".html": "text/html", ".htm": "text/html", ".md": "text/markdown", ".txt": "text/plain"}
MAX_FILES = 5000
MAX_FILE_BYTES = 1024 * 1024
SNIPPET_LENGTH = 300
TITLE_WEIGHT = 5
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"^#\s+(.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FolderPage:
    """Page of the folder, with the number of times that each word occurs."""

    url: str
    title: str
    text: str
    path: Path
    words: Counter[str] = field(default_factory=Counter)


class FolderBackend:
    """Search back end over the files `HOST/PATH` of a folder, as `wget --mirror` writes these: the URL is `https://HOST/PATH`.

    The rank is that of BM25 without a correction for the length of the page.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def search(self, query: str, context: SearchContext) -> list[SearchResult]:
        """Return the pages that contain words of `query`, the best first."""
        return await asyncio.to_thread(self._search, query, context)

    async def read_page(self, url: str) -> tuple[str, bytes]:
        """Return the media type and the bytes of a page. Raises PageMissing."""
        return await asyncio.to_thread(self._read_page, url)

    def _search(self, query: str, context: SearchContext) -> list[SearchResult]:
        pages = [page for page in self._pages() if context.domains.allows(page.url)]
        words = set(_words(query))
        ranked = sorted(((_score(page, words, pages), page.url, page) for page in pages), key=lambda one: (-one[0], one[1]))
        return [
            SearchResult(page.url, page.title, _snippet(page.text, words))
            for score, _, page in ranked[: context.max_results]
            if score > 0
        ]

    def _read_page(self, url: str) -> tuple[str, bytes]:
        comparable_url = _comparable(url)
        for page in self._pages():
            if _comparable(page.url) == comparable_url:
                return MEDIA_TYPES[page.path.suffix.lower()], page.path.read_bytes()
        raise PageMissing(url)

    def _pages(self) -> list[FolderPage]:
        return [_load(self._folder, path, stat.st_mtime_ns, stat.st_size) for path in self._files() for stat in [path.stat()]]

    def _files(self) -> Iterator[Path]:
        page_files = (path for path in sorted(self._folder.glob("*/**/*")) if path.suffix.lower() in MEDIA_TYPES)
        for path, _ in zip(page_files, range(MAX_FILES), strict=False):
            if path.is_file() and path.stat().st_size <= MAX_FILE_BYTES:
                yield path


@lru_cache(maxsize=MAX_FILES)
def _load(folder: Path, path: Path, _changed_ns: int, _size: int) -> FolderPage:
    """Read a page. The time of the last change and the size belong to the key of the cache."""
    source = path.read_text(encoding="utf-8", errors="replace")
    title, text = html_to_markdown(source) if path.suffix.lower() in (".html", ".htm") else _read_text(source)
    title = title or path.stem
    words = Counter(_words(text))
    words.update(dict.fromkeys(_words(title), TITLE_WEIGHT))
    return FolderPage(_url_of(folder, path), title, text, path, words)


def _url_of(folder: Path, path: Path) -> str:
    relative = path.relative_to(folder).as_posix()
    host, _, url_path = relative.partition("/")
    if url_path.endswith(("index.html", "index.htm")):
        url_path = url_path.rpartition("/")[0] + "/" if "/" in url_path else ""
    return f"https://{host}/{quote(url_path)}"


def _comparable(url: str) -> str:
    return unquote(urldefrag(url)[0]).rstrip("/").removeprefix("https://").removeprefix("http://")


def _score(page: FolderPage, words: set[str], pages: Sequence[FolderPage]) -> float:
    score = 0.0
    for word in words:
        count = page.words[word]
        if count:
            with_word = sum(1 for other in pages if word in other.words)
            score += math.log(1 + len(pages) / with_word) * count * 2.2 / (count + 1.2)
    return score


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _snippet(text: str, words: set[str]) -> str:
    """Return the part of `text` around the first word of the query."""
    flat = " ".join(text.split())
    at = next((match.start() for match in _WORD.finditer(flat.lower()) if match[0] in words), 0)
    start = max(0, at - SNIPPET_LENGTH // 3)
    return flat[start : start + SNIPPET_LENGTH]


def _read_text(source: str) -> tuple[str, str]:
    heading = _HEADING.search(source)
    return heading[1].strip() if heading else "", source
