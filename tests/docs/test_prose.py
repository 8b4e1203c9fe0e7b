"""Names and prose of the package: shares of vague and riddling first lines, private words, sizes of functions and folders."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = ROOT / "responses_app"
Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# Pronouns without a noun. Relative "that" and "which" follow their noun and are not counted.
VAGUE: Final = re.compile(
    r"\b(it|its|itself|what|whatever|whoever|nobody|somebody|anybody|everybody|one|ones|they|them|their|those|who|whom|whose)\b",
    re.I,
)
RIDDLE: Final = re.compile(
    r"(what|whoever|whatever|whether|how|where|why|who|when|one|ones|that|those|these|it|nobody|somebody|they|there)\b", re.I
)
# Words that an earlier version of the code used for several things each.
PRIVATE: Final = re.compile(
    r"(?<![a-z])(told|tells?|telling|said|says?|saying|hears?|heard|hearing|aloud|speaks?|spoken|utter|whoever|hush|hollow|shelve)(?![a-z])",
    re.I,
)
MAX_VAGUE: Final = 0.12
MAX_RIDDLES: Final = 0.03
MAX_PRIVATE_WORDS: Final = 30
MAX_REPEATED_CLASS_NAMES: Final = 6
MAX_MODULES_OF_A_FOLDER: Final = 13
MAX_LINES_OF_A_FUNCTION: Final = 50
MAX_LONG_FUNCTIONS: Final = 4


def modules() -> Iterator[Path]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if not {"demo", "migrations"} & set(path.relative_to(PACKAGE).parts):
            yield path


SOURCES: Final = {path: path.read_text() for path in modules()}
TREES: Final = {path: ast.parse(source) for path, source in SOURCES.items()}


def first_lines() -> Iterator[tuple[str, str]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            text = ast.get_docstring(node) if isinstance(node, Documented) else None
            if text:
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", re.sub(r"`[^`]*`", "X", text.splitlines()[0])


def share(pattern: re.Pattern[str], *, at_start: bool = False) -> tuple[float, list[str]]:
    lines = list(first_lines())
    places = [f"{place} {line}" for place, line in lines if (pattern.match(line) if at_start else pattern.search(line))]
    return len(places) / len(lines), places


def test_few_first_lines_have_a_pronoun_without_its_noun() -> None:
    part, places = share(VAGUE)
    assert part <= MAX_VAGUE, places


def test_few_first_lines_open_as_a_riddle() -> None:
    part, places = share(RIDDLE, at_start=True)
    assert part <= MAX_RIDDLES, places


def test_private_words_are_rare() -> None:
    places = []
    for path, source in SOURCES.items():
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in (tokenize.NAME, tokenize.COMMENT, tokenize.STRING):
                words = PRIVATE.findall(re.sub(r"([a-z])([A-Z])", r"\1_\2", token.string))
                places += [f"{path.relative_to(ROOT)}:{token.start[0]} {word}" for word in words]
    assert len(places) < MAX_PRIVATE_WORDS, places


def test_class_names_are_unique() -> None:
    # Django prescribes the names `Command` and `Meta`.
    names = Counter(node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    repeated = [name for name, count in names.items() if count > 1 and name not in ("Command", "Meta")]
    assert len(repeated) <= MAX_REPEATED_CLASS_NAMES - 2, repeated


def test_folders_are_small() -> None:
    sizes = Counter(path.parent.relative_to(ROOT) for path in SOURCES)
    assert not {str(folder): count for folder, count in sizes.items() if count > MAX_MODULES_OF_A_FOLDER}


def test_functions_are_short() -> None:
    functions = [
        (f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len([name for name, lines in functions if lines > MAX_LINES_OF_A_FUNCTION]) <= MAX_LONG_FUNCTIONS
