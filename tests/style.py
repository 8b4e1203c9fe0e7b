"""Lint step: count vague prose, empty names and structural faults of the whole checkout, and compare each count with its limit.

`python -m tests.style` prints each count, and the places of a count that is over its limit. The exit code is then 1.
"""

from __future__ import annotations

import ast
import gc
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[1]
GENERATED: Final = frozenset({"migrations", "demo"})
Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)

MAX_VAGUE_PERCENT: Final = 12
MAX_RIDDLE_PERCENT: Final = 3
MAX_PRIVATE_WORDS: Final = 30
MAX_EMPTY_NAMES: Final = 60
MAX_REPEATED_CLASS_NAMES: Final = 6
MAX_MODULES: Final = 13
MAX_FUNCTION_LINES: Final = 50
MAX_LONG_FUNCTIONS: Final = 4

# Pronouns without a noun. Relative "that" and "which" follow their noun and are not counted.
VAGUE: Final = re.compile(r"\b(it|its|whoever|nobody|somebody|whatever|what|ones?|those|them|they)\b", re.I)
RIDDLE: Final = re.compile(r"(it|what|whoever|whatever|nobody|somebody|one|those|whether|where|as|how|when)\b", re.I)
# Words that an earlier version of the code used for several things each.
PRIVATE: Final = re.compile(
    r"_?(told|said|tell|say|hear|heard|told_\w+|let_go|give_back|aloud|speaks|patient|sure|sees|blind|born|birth|kept|saying"
    r"|listen(er)?|ear|voice|speech|begun)"
)
# The same words in comments and texts of the package.
PRIVATE_TEXT: Final = re.compile(
    r"(?<![a-z])(told|tells?|telling|said|says?|saying|hears?|heard|hearing|aloud|speaks?|spoken|utter|whoever|hush)(?![a-z])",
    re.I,
)
# Names that say nothing about the value.
EMPTY: Final = re.compile(r"_?(found|given|wanted|rest|own)")
# Documents that this repository does not contain. Sections of an RFC are public.
ABSENT: Final = re.compile(r"(?<!RFC \d{4} )§\s*\d|\bdecision [A-Z]\d+|\bchecklist \d+|\([A-Z]\d{1,2}\)|\bcase [A-Z]\d+")
# Django prescribes these names.
SHARED_CLASS_NAMES: Final = frozenset({"Command", "Meta"})

# A name of a test begins with its subject. These words name none.
PRONOUN: Final = re.compile(
    r"test_(it|its|what|whatever|that|one|nobody|somebody|who|whoever|whose|those|these|they|there|this|how|when|where|why)_"
)
# Folders that test something else than one package: programs around the package, whole servers, clients of others, the documents.
OTHER_FOLDERS: Final = frozenset(
    {
        "support",
        "upgrade",
        "project",
        "bench",
        "chaos",
        "clients",
        "contract",
        "deploy",
        "docs",
        "hosts",
        "proportions",
        "routers",
    }
)
# Django looks for commands in this folder and in none below.
FLAT_FOLDERS: Final = frozenset({"responses_app/management/commands"})
SPLIT_FOLDERS: Final = frozenset({"api/context", "api/tools"})
# Pauses of real time in tests: a call of any function `sleep`, and a timer.
PAUSE: Final = re.compile(r"\bsleep\(|\bTimer\(")
PAUSING: Final = {
    "support/mcp/program.py": "a tool that works for some time is the subject",
    "support/waiting.py": "polls conditions of other processes",
    "support/manual_clock.py": "the clock that replaces real time",
    "support/images/image_server.py": "a server that sends slowly is the subject",
    "support/server/slow_clients.py": "a client that is slow by the clock of the server is the subject",
    "support/server/echo_app.py": "an application that runs for a given time, and turns of the event loop",
    "api/tools/test_response_times.py": "code that runs for some time is the subject",
    "chaos/waits.py": "random pauses of the chaos test",
    "engines/vllm/test_inprocess.py": "CPU time per real time is the subject",
    "project/test_style.py": "a text with a pause is the subject",
    "server/processes/test_process_tree.py": "a round that takes longer than a limit of real time is the subject",
}


@dataclass(frozen=True)
class Module:
    """Python file below the root of a checkout."""

    path: str
    text: str

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.path.split("/"))

    @property
    def is_test(self) -> bool:
        """Return True if the rules for tests hold: for all of `tests` but programs of clients and this module."""
        return self.parts[0] == "tests" and self.parts[:3] != ("tests", "clients", "python") and self.path != "tests/style.py"

    def first_lines(self) -> Iterator[tuple[str, str]]:
        """Yield place and first line of each docstring, without code in backticks."""
        for node in self.nodes:
            docstring = ast.get_docstring(node) if isinstance(node, Documented) else None
            if docstring:
                yield f"{self.path}:{getattr(node, 'lineno', 1)}", re.sub(r"`[^`]*`", "X", docstring.splitlines()[0])

    def names(self) -> Iterator[tuple[str, str]]:
        """Yield place and name of each variable, parameter and function."""
        for node in self.nodes:
            match node:
                case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield f"{self.path}:{node.lineno}", name

    def imported(self) -> Iterator[str]:
        """Yield the modules that the file imports; for `from tests import name`, that name's module."""
        for node in self.nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module if node.module != "tests" else f"tests.{node.names[0].name}"


Places: TypeAlias = list[str]


@dataclass(frozen=True)
class Check:
    """Rule with a limit. With `share_of`, count and limit are percents of its result."""

    name: str
    limit: int
    find: Callable[[Sequence[Module]], Places]
    share_of: Callable[[Sequence[Module]], int] | None = None


def read_modules(root: Path) -> list[Module]:
    """Read all Python files that git tracks below `root`, without generated ones."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    paths = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    sources = [path for path in paths if not GENERATED & set(path.split("/")) and (root / path).exists()]
    return [Module(path, (root / path).read_text()) for path in sources]


def count_docstrings(modules: Sequence[Module]) -> int:
    return sum(1 for module in modules for _ in module.first_lines())


def vague_lines(modules: Sequence[Module]) -> Places:
    return [f"{place} {line}" for module in modules for place, line in module.first_lines() if VAGUE.search(line)]


def riddles(modules: Sequence[Module]) -> Places:
    return [f"{place} {line}" for module in modules for place, line in module.first_lines() if RIDDLE.match(line)]


def private_words(modules: Sequence[Module]) -> Places:
    return [f"{place} {name}" for module in modules for place, name in module.names() if PRIVATE.fullmatch(name)]


def private_text(modules: Sequence[Module]) -> Places:
    places = []
    for module in modules:
        # Few files have such a word at all; to divide a file into tokens takes long.
        if module.parts[0] == "responses_app" and PRIVATE_TEXT.search(re.sub(r"([a-z])([A-Z])", r"\1_\2", module.text)):
            for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
                if token.type in (tokenize.NAME, tokenize.COMMENT, tokenize.STRING):
                    words = PRIVATE_TEXT.findall(re.sub(r"([a-z])([A-Z])", r"\1_\2", token.string))
                    places += [f"{module.path}:{token.start[0]} {word}" for word in words]
    return places


def empty_names(modules: Sequence[Module]) -> Places:
    """List empty names. The decorator `given` has its name from hypothesis."""
    places = []
    for module in modules:
        allowed = {"given"} if "hypothesis" in module.imported() else set()
        places += [f"{place} {name}" for place, name in module.names() if EMPTY.fullmatch(name) and name not in allowed]
    return places


def absent_documents(modules: Sequence[Module]) -> Places:
    lines = ((module.path, number, line) for module in modules for number, line in enumerate(module.text.splitlines(), 1))
    return [f"{path}:{number} {line.strip()}" for path, number, line in lines if ABSENT.search(line)]


def repeated_class_names(modules: Sequence[Module]) -> Places:
    classes = [node.name for module in modules for node in module.nodes if isinstance(node, ast.ClassDef)]
    return [name for name, count in Counter(classes).items() if count > 1 and name not in SHARED_CLASS_NAMES]


def large_folders(modules: Sequence[Module]) -> Places:
    folders = Counter("/".join(module.parts[:-1]) for module in modules if module.parts[-1] != "__init__.py")
    return [
        f"{folder}: {count} modules" for folder, count in folders.items() if count > MAX_MODULES and folder not in FLAT_FOLDERS
    ]


def long_functions(modules: Sequence[Module]) -> Places:
    functions = ((module.path, node) for module in modules for node in module.nodes if isinstance(node, FUNCTIONS))
    sizes = [
        (f"{path}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1) for path, node in functions
    ]
    return [f"{name}: {lines} lines" for name, lines in sizes if lines > MAX_FUNCTION_LINES]


def foreign_imports(modules: Sequence[Module]) -> Places:
    """List imports between tests; what several tests need is in tests/support, or in the program of their folder."""
    return [
        f"{module.path} imports {name}"
        for module in modules
        if module.is_test
        for name in module.imported()
        if name.split(".")[0] == "tests" and not _may_import(module, name)
    ]


def _may_import(module: Module, name: str) -> bool:
    if name in {"tests.run", "tests.style"} or name.startswith("tests.support"):
        return True
    return module.parts[1] == "chaos" and name.startswith("tests.chaos") and not name.rpartition(".")[2].startswith("test_")


def unmirrored_folders(modules: Sequence[Module]) -> Places:
    """List folders of tests that no package has the name of."""
    folders = {"/".join(module.parts[1:-1]) for module in modules if module.is_test and module.parts[-1] == "__init__.py"}
    packages = {"/".join(module.parts[1:-1]) for module in modules if module.parts[0] == "responses_app"}
    mirrored = {name for name in folders if name.split("/")[0] not in OTHER_FOLDERS | {""} and not _is_split(name)}
    return sorted(name for name in mirrored if not any(f"{package}/".startswith(f"{name}/") for package in packages))


def _is_split(folder: str) -> bool:
    return any(folder == name or folder.startswith(f"{name}/") for name in SPLIT_FOLDERS)


def pronoun_tests(modules: Sequence[Module]) -> Places:
    functions = ((module, node) for module in modules if module.is_test for node in module.nodes if isinstance(node, FUNCTIONS))
    return [f"{module.path}:{node.lineno} {node.name}" for module, node in functions if PRONOUN.match(node.name)]


def unlisted_pauses(modules: Sequence[Module]) -> Places:
    """List tests that pause and are not in PAUSING, and entries of PAUSING that do not pause."""
    pausing = {module.path.removeprefix("tests/") for module in modules if module.is_test and PAUSE.search(module.text)}
    return sorted(pausing ^ set(PAUSING))


def random_tests(modules: Sequence[Module]) -> Places:
    """List tests that import `random`, outside the chaos test, whose runs over real processes cannot be shrunk."""
    return [
        module.path for module in modules if module.is_test and module.parts[1] != "chaos" and "random" in module.imported()
    ]


CHECKS: Final = (
    Check("vague first lines", MAX_VAGUE_PERCENT, vague_lines, count_docstrings),
    Check("first lines that open as a riddle", MAX_RIDDLE_PERCENT, riddles, count_docstrings),
    Check("private words as names", MAX_PRIVATE_WORDS, private_words),
    Check("private words in the package", MAX_PRIVATE_WORDS, private_text),
    Check("empty names", MAX_EMPTY_NAMES, empty_names),
    Check("citations of documents that are not here", 0, absent_documents),
    Check("class names that stand twice", MAX_REPEATED_CLASS_NAMES, repeated_class_names),
    Check(f"folders with more than {MAX_MODULES} modules", 0, large_folders),
    Check(f"functions with more than {MAX_FUNCTION_LINES} lines", MAX_LONG_FUNCTIONS, long_functions),
    Check("imports between tests (move what is shared to tests/support)", 0, foreign_imports),
    Check("folders of tests without a package", 0, unmirrored_folders),
    Check("names of tests that begin with a pronoun (test_<subject>_<behaviour>)", 0, pronoun_tests),
    Check("pauses in tests (wait for a condition with tests/support/waiting.py)", 0, unlisted_pauses),
    Check("random numbers in tests (draw the cases with hypothesis)", 0, random_tests),
)


def run(modules: Sequence[Module]) -> bool:
    """Print all counts, and the places of those over their limits. Return True if none is over its limit."""
    is_within = True
    for check in CHECKS:
        places = check.find(modules)
        total = check.share_of(modules) if check.share_of else 0
        count = 100 * len(places) / max(total, 1) if check.share_of else len(places)
        unit = " %" if check.share_of else ""
        print(f"{check.name}: {count:.4g}{unit} (limit {check.limit}{unit})")  # noqa: T201 - the output of a program
        if count > check.limit:
            is_within = False
            print(*(f"  {place}" for place in places), sep="\n")  # noqa: T201 - the output of a program
    return is_within


if __name__ == "__main__":
    # All syntax trees stay in memory: the collector would pass over them again and again.
    gc.disable()
    sys.exit(0 if run(read_modules(ROOT)) else 1)
