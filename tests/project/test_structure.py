"""Structure of the tests: imports of helpers, folders, names of tests, pauses, and random numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
# A program of its own, which a test runs too.
CHAOS = TESTS / "chaos"
ROOT = TESTS.parent
MODULES = sorted(path for path in TESTS.rglob("*.py") if path.parent != TESTS / "clients" / "python")
# Folders that test something else than one package: programs around the package, whole servers, clients of others, the documents.
OTHERS = frozenset({"support", "project", "bench", "chaos", "clients", "contract", "docs", "hosts", "proportions"})
MAX_MODULES = 13
# A name begins with its subject. These words name none.
PRONOUN = re.compile(
    r"test_(it|its|what|whatever|that|one|nobody|somebody|who|whoever|whose|those|these|they|there|this|how|when|where|why)_"
)
# Pauses of real time in tests: a call of any function `sleep`, and a timer.
PAUSE = re.compile(r"\bsleep\(|\bTimer\(")
PAUSING = {
    "api/tools/test_response_times.py": "a tool that works for some time is the subject",
    "support/mcp/program.py": "a tool that works for some time is the subject",
    "support/waiting.py": "polls conditions of other processes",
    "support/manual_clock.py": "the clock that replaces real time",
    "support/images/image_server.py": "a server that sends slowly is the subject",
    "support/server/slow_clients.py": "a client that is slow by the clock of the server is the subject",
    "support/server/echo_app.py": "an application that runs for a given time, and turns of the event loop",
    "chaos/waits.py": "random pauses of the chaos test",
    "engines/vllm/test_inprocess.py": "CPU time per real time is the subject",
    "server/processes/test_process_tree.py": "a round that takes longer than a limit of real time is the subject",
}


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def name(path: Path) -> str:
    """Return the path of a module below `tests`."""
    return path.relative_to(TESTS).as_posix()


def imports(path: Path) -> Iterator[str]:
    """Yield the modules below `tests` that a file imports."""
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tests":
            yield node.module if node.module != "tests" else f"tests.{node.names[0].name}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "tests")


def imported_modules(path: Path) -> set[str]:
    modules: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return modules


def is_helper(module: str, path: Path) -> bool:
    """Return whether a test module may import a module: a helper, or a part of the program of its folder."""
    if module == "tests.run" or module.startswith("tests.support"):
        return True
    return CHAOS in path.parents and module.startswith("tests.chaos") and not module.rpartition(".")[2].startswith("test_")


def test_helpers_come_from_support() -> None:
    foreign = {
        name(path): names for path in MODULES if (names := [module for module in imports(path) if not is_helper(module, path)])
    }
    assert foreign == {}, "move what these modules need to tests/support"


def test_folders_mirror_the_packages() -> None:
    folders = [path.relative_to(TESTS) for path in TESTS.rglob("*") if (path / "__init__.py").exists()]
    mirrored = [
        folder
        for folder in folders
        if folder.parts[0] not in OTHERS and folder.parts[:2] not in {("api", "context"), ("api", "tools")}
    ]
    assert [str(folder) for folder in mirrored if not (ROOT / "responses_app" / folder).is_dir()] == []


def test_no_folder_has_too_many_modules() -> None:
    folders = {path.parent for path in MODULES}
    sizes = {str(folder.relative_to(ROOT)): len(set(folder.glob("*.py")) - {folder / "__init__.py"}) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > MAX_MODULES} == {}


def test_names_of_tests_begin_with_a_subject() -> None:
    functions = (
        (path, node) for path in MODULES for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    vague = [f"{name(path)}: {function.name}" for path, function in functions if PRONOUN.match(function.name)]
    assert vague == [], "name the test test_<subject>_<behaviour>"


def test_only_listed_modules_pause() -> None:
    pausing = {name(path) for path in MODULES if PAUSE.search(path.read_text()) and path != Path(__file__)}
    assert pausing == set(PAUSING), "wait for a condition with tests/support/waiting.py, or for a gate"


def test_random_cases_come_from_hypothesis() -> None:
    """Forbid `random` outside the chaos test, whose runs over real processes cannot be shrunk."""
    drawing = [name(path) for path in MODULES if CHAOS not in path.parents and "random" in imported_modules(path)]
    assert drawing == [], "draw the cases with hypothesis"
