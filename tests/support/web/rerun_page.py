"""Page that edits and reruns a request: the parts that its tests use, and texts of gpt-oss for the recordings."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page


def answer(text: str) -> str:
    return f"<|channel|>final<|message|>{text}<|return|>"


def call(name: str, **arguments: Any) -> str:
    return f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json.dumps(arguments)}<|call|>"


def run(page: Page) -> None:
    page.get_by_role("button", name="Run", exact=True).click()


def column(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)
