"""Test case with all server tools but MCP: a folder of pages, a vector store of two files, and a sandbox, in both dialects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from responses_app.dialects.base import Dialect
from responses_app.models import VectorStore
from tests.support.api.case import HARMONY, tokens
from tests.support.dialects.parser_driver import byte_vocabulary, chat
from tests.support.runs.server_tools import ConfiguredToolsCase
from tests.support.sandbox.runner import runner
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.vector_stores import add_text, make_store, search_in_test_thread
from tests.support.web_search.pages_folder import write_pages

CODE_TOOL = {"type": "code_interpreter", "container": {"type": "auto"}}
WEB_TOOL = {"type": "web_search"}
FOXES, MENU = "foxes.txt", "menu 🙂.txt"
_HEADERS = {
    "web_search": "analysis to=browser.search code",
    "open_page": "analysis to=browser.open code",
    "find_in_page": "analysis to=browser.find code",
    "file_search": "commentary to=functions.file_search <|constrain|>json",
    "python": "analysis to=python code",
}


@pytest.mark.usefixtures("services")
class ServerToolsCase(ConfiguredToolsCase):
    """The class that inherits this case chooses the dialect with `HarmonyTexts` or `ChatTexts`."""

    __test__ = False
    call: Callable[..., str]
    mark: Callable[[str], str]
    answer: Callable[[str], str]
    store: VectorStore

    @pytest.fixture(autouse=True)
    def services(self, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
        """Start a sandbox, and configure the tools."""
        folder: Path = tmp_path_factory.mktemp("services")
        search = {"backend": "folder", "url": f"folder://{write_pages(folder / 'pages')}"}
        with (
            runner(folder) as sandbox,
            override_settings(RESPONSES_SANDBOX_URL=sandbox.url, RESPONSES_WEB_SEARCH=search, **file_storage_settings(folder)),
        ):
            yield

    def setUp(self) -> None:
        super().setUp()
        self.enterContext(search_in_test_thread())
        self.store = make_store(self.key.project)
        # The first file fits a query about foxes best, so its passage has the number 0.
        add_text(self.store, "Foxes hunt. Foxes hunt at night.", FOXES)
        add_text(self.store, "A menu of berries, soups and many other dishes, which foxes do not read.", MENU)

    @property
    def declarations(self) -> list[dict[str, Any]]:
        """The declarations of all tools."""
        return [CODE_TOOL, {"type": "file_search", "vector_store_ids": [self.store.uid]}, WEB_TOOL]


class HarmonyTexts:
    """Calls and answers of gpt-oss."""

    dialect: Dialect = HARMONY
    encode = staticmethod(tokens)

    @staticmethod
    def call(function: str, arguments: str = "", **values: Any) -> str:
        """Return a call with `values`, or with the text `arguments`."""
        text = values["code"] if function == "python" else arguments or json.dumps(values)
        return f"<|channel|>{_HEADERS[function]}<|message|>{text}<|call|>"

    @staticmethod
    def mark(function: str) -> str:
        """Return the text by which a constraint allows calls of the function."""
        return _HEADERS[function].split()[1]

    @staticmethod
    def answer(text: str) -> str:
        """Return an answer."""
        return f"<|channel|>final<|message|>{text}<|return|>"


class ChatTexts:
    """Calls and answers of a chat model."""

    dialect: Dialect = chat()
    encode = staticmethod(byte_vocabulary().encode)

    @staticmethod
    def call(function: str, arguments: str = "", **values: Any) -> str:
        """Return a call with `values`, or with the text `arguments`."""
        return f'<tool_call>\n{{"name": "{function}", "arguments": {arguments or json.dumps(values)}}}\n</tool_call><|im_end|>'

    @staticmethod
    def mark(function: str) -> str:
        """Return the text by which a constraint allows calls of the function."""
        return f'"name": "{function}"'

    @staticmethod
    def answer(text: str) -> str:
        """Return an answer."""
        return f"{text}<|im_end|>"
