"""Checks of axe-core in a page: violations of WCAG 2.2 at level AA, and of best practices."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from bench.client_matrix import install
from responses_app.installation.data_dir import ROOT

# Names of standards: WCAG 2.2 at level AA, and best practices as the authors of axe-core call these.
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CHECK = """rules => axe.run(document, {runOnly: {type: "tag", values: rules}}).then(({violations}) =>
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
    """Return the violations that axe-core reports for the current page."""
    # By evaluation and not as a script of the page, which the policy of the page forbids.
    page.evaluate(axe)
    found: list[dict[str, Any]] = page.evaluate(CHECK, RULES)
    return found
