"""Lanes: the tests in groups by what they need, derived from folders, fixtures, the markers `engine` and `slow`, and recorded times."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.suite import slow_tests

TESTS = Path(__file__).parents[2]
# From the cheapest to the dearest; `bin/test --lane NAME` runs one lane. The lane `whole` is all but those of `ON_DEMAND`.
LANES = ("fast", "families", "slow", "server", "browser", "engine", "proportions", "clients", "routers")
ON_DEMAND = frozenset({"proportions", "clients", "routers"})
WHOLE = "whole"
# Fixtures that start a browser, or `bin/serve` or a proxy before it, or build the wheel; a test that needs one of them, also
# indirectly, belongs to that lane.
BROWSER_FIXTURES = frozenset({"chromium", "browser"})
SERVER_FIXTURES = frozenset({"shared", "chat_server", "server", "small_server", "proxy", "wheel"})
# Modules that use this one start `bin/serve` themselves.
SERVER_MODULE = "tests.support.server.serve_command"
# Tables of all model families: thousands of short tests.
FAMILIES = (("dialects", "families"), ("dialects", "formats"))
# Folders whose tests start processes of their own.
FOLDERS = {
    "clients": "clients",
    "proportions": "proportions",
    "routers": "routers",
    "contract": "engine",
    "server": "server",
    "bench": "server",
    "chaos": "server",
    "hosts": "server",
}


def lane(item: pytest.Item) -> str:
    """Name the lane of a test."""
    fixtures = frozenset(getattr(item, "fixturenames", ()))
    path = item.nodeid.partition("::")[0].split("/")
    folder = FOLDERS.get(path[1])
    if folder in ON_DEMAND:
        return folder
    if folder == "engine" or item.get_closest_marker("engine"):
        return "engine"
    if fixtures & BROWSER_FIXTURES or item.get_closest_marker("browser"):
        return "browser"
    module = getattr(item, "module", None)
    if folder or fixtures & SERVER_FIXTURES or (module is not None and _starts_servers(module)):
        return "server"
    if tuple(path[1:3]) in FAMILIES:
        return "families"
    return "slow" if item.get_closest_marker("slow") or slow_tests.is_slow(item.nodeid) else "fast"


@cache
def _starts_servers(module: ModuleType) -> bool:
    return any(getattr(value, "__module__", None) == SERVER_MODULE for value in vars(module).values())


def add_option(parser: pytest.Parser) -> None:
    """Add the option `--lane` to pytest."""
    parser.addoption("--lane", choices=(*LANES, WHOLE), help="run the tests of one lane only")


def deselect(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the tests of all lanes but the lane of `--lane`."""
    chosen = config.getoption("--lane")
    if chosen is None:
        return
    selected: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        of_item = lane(item)
        is_kept = of_item == chosen if chosen != WHOLE else of_item not in ON_DEMAND
        (selected if is_kept else dropped).append(item)
    config.hook.pytest_deselected(items=dropped)
    items[:] = selected


def ignores(config: pytest.Config, path: Path) -> bool:
    """Check that a folder has no test of the chosen lane, so that its modules need not be imported."""
    chosen = config.getoption("--lane")
    if chosen is None or not path.is_dir():
        return False
    if path.parent != TESTS:
        return chosen in ("fast", "slow") and (path.parent.name, path.name) in FAMILIES
    folder = FOLDERS.get(path.name)
    if chosen == WHOLE:
        return folder in ON_DEMAND
    return folder != chosen if ON_DEMAND & {chosen, folder} else chosen in ("fast", "slow") and folder is not None
