"""Checks of axe-core in a page: violations of WCAG 2.2 at level AA, and of best practices."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize

from bench.client_matrix import install
from responses_app.installation.data_dir import ROOT

# Names of standards: WCAG 2.2 at level AA, and best practices as the authors of axe-core call these.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# The only rules whose result depends on a colour scheme.
COLOUR_RULES = ["color-contrast", "link-in-text-block"]
WIDE, NARROW = ViewportSize(width=1400, height=800), ViewportSize(width=360, height=800)
CHECK = """runOnly => axe.run(document, {runOnly, resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, help, nodes}) =>
    ({id, help, at: nodes.slice(0, 4).map((node) => node.html.slice(0, 200) + " " + node.failureSummary)})))"""


def axe_source() -> str:
    """Return the source of axe-core. Skips the test if axe-core is not installed."""
    try:
        folder = install.install_npm(ROOT / "tests" / "web" / "axe" / "package.json")
    except install.NotInstalled as reason:
        pytest.skip(f"no axe-core for the check of accessibility: {reason}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def violations(page: Page, axe: str) -> list[dict[str, Any]]:
    """Return the violations that axe-core reports for the current page.

    A test of many pages adds `axe` to these as an initial script, as each transfer of it takes a quarter of a second of CPU.
    """
    if not page.evaluate("'axe' in window"):
        # By evaluation and not as a script of the page, which the policy of the page forbids.
        page.evaluate(axe)
    return _run(page, "tag", RULES)


def violations_on_screens(page: Page, axe: str) -> list[dict[str, Any]]:
    """Return the violations on a wide light, a wide dark and a narrow dark screen, and how much is wider than a screen.

    The page is loaded on the wide light screen, and shown there again at the end. The wide dark screen is checked for colours alone.
    """
    violations_found = [*violations(page, axe), *_overflow(page)]
    page.emulate_media(color_scheme="dark")
    violations_found += _run(page, "rule", COLOUR_RULES)
    page.set_viewport_size(NARROW)
    unfold(page)
    violations_found += [*_run(page, "tag", RULES), *_overflow(page)]
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(WIDE)
    return violations_found


def unfold(page: Page) -> None:
    """Open all details of the page but the settings of the chat."""
    for folded in page.locator("main details:not(.settings, .menu):not([open]) > summary").all():
        if folded.is_visible():
            folded.click()


def _run(page: Page, kind: str, values: list[str]) -> list[dict[str, Any]]:
    violations_of_kind: list[dict[str, Any]] = page.evaluate(CHECK, {"type": kind, "values": values})
    return violations_of_kind


def _overflow(page: Page) -> list[dict[str, Any]]:
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [{"wider than the screen": wide}] if wide > 0 else []
