"""Citations resolve: links and anchors of the documentation, and documents that code names."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.protocol.output_problems import MESSAGES

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")
EXTENSION = re.compile(r"\.(?:py|md|js|html|css|toml|jsonl?|ya?ml|txt|sh)$")
DOCUMENT = re.compile(r"\b(?:docs/)?[\w/-]+\.md(?:#[\w-]+)?")


def tracked(*patterns: str) -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


PAGES = tracked("*.md")
# Vendored modules cite documents of their own projects.
SOURCES = tracked("*.py", "*.js", "*.html", "*.toml", ":!tests/docs", ":!*/vendor/*")


def anchors(page: Path) -> set[str]:
    """The anchors of a page: explicit ones, and headings as GitHub names them."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r'<a id="([^"]+)"', text))


def problem(target: str, page: Path) -> str | None:
    """Return the reason why a link of a page does not resolve, or None."""
    name, _, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists():
        return f"{target}: no such file"
    if anchor and anchor not in anchors(file):
        return f"{target}: no such anchor"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_resolve(page: Path) -> None:
    targets = [one or other for one, other in LINK.findall(page.read_text())]
    local = [target for target in targets if "://" not in target and not target.startswith("mailto:")]
    assert not [link_problem for target in local if (link_problem := problem(target, page))]


FILES = [path.relative_to(ROOT) for path in tracked()]
NAMES = {path.name for path in FILES}
PLACES = {*FILES, *(folder for path in FILES for folder in path.parents)}
TOP = {path.parts[0] for path in FILES if len(path.parts) > 1}


def path_spans(text: str) -> Iterator[str]:
    """Yield the code spans that name modules, pages, files in folders, or anything in a top folder."""
    for span in SPAN.findall(re.sub(r"```.*?```", "", text, flags=re.S)):
        in_folder = "/" in span and (EXTENSION.search(span) or span.partition("/")[0] in TOP)
        if in_folder or span.endswith((".py", ".md")):
            yield span


def is_in_repository(span: str, page: Path) -> bool:
    """Return True for a path from the top, from the page or from the package, and for the bare name of any file."""
    bases = (Path(), page.parent.relative_to(ROOT), Path("responses_app"))
    return span in NAMES or any(base / span in PLACES for base in bases)


@pytest.mark.parametrize(
    ("span", "expected"),
    [
        ("tests/docs/test_citations.py", True),
        ("protocol/items/", True),
        ("protocol.md", True),
        ("bin/serve", True),
        ("tests/docs/no_such_test.py", False),
        ("bin/no_such_command", False),
        ("no_such_page.md", False),
    ],
)
def test_path_span_resolves_only_to_tracked_files(span: str, expected: bool) -> None:
    assert is_in_repository(span, ROOT / "docs/settings.md") is expected


def test_path_spans_are_recognised_by_suffix_or_top_folder() -> None:
    text = "`a/b.py` `page.md` `bin/serve` `requirements.txt` `v1/models` `model.chat`\n```\n`c/d.py`\n```"
    assert list(path_spans(text)) == ["a/b.py", "page.md", "bin/serve"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_in_code_spans_exist(page: Path) -> None:
    assert not [span for span in path_spans(page.read_text()) if not is_in_repository(span, page)]


def cited() -> Iterator[tuple[Path, str]]:
    for path in SOURCES:
        for name in DOCUMENT.findall(path.read_text()):
            yield path, name


def test_documents_that_code_names_exist() -> None:
    names = {page.name for page in PAGES}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in cited()
        if (problem(name, ROOT / "x") if name.startswith("docs/") else Path(name.partition("#")[0]).name not in names and name)
    ]
    assert not missing


def test_every_rule_of_the_conformance_checker_is_explained_and_nothing_else_is() -> None:
    sources = "".join(path.read_text() for path in tracked("responses_app/protocol/conformance/*.py"))
    rules = set(re.findall(r'"([A-Z][0-9])"', sources))
    assert rules
    table = re.findall(r"^\| `([A-Z][0-9])` \|", (ROOT / "docs/protocol.md").read_text(), re.M)
    assert sorted(table) == sorted(rules)


def test_every_output_problem_is_explained_and_nothing_else_is() -> None:
    section = (ROOT / "docs/protocol.md").read_text().partition("## Output problems")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.M) == list(MESSAGES)


DECISIONS = tracked("docs/adr/*.md")


def test_decisions_have_a_number_a_status_and_a_date() -> None:
    pages = DECISIONS
    numbers = [int(page.name[:4]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        head = page.read_text().splitlines()
        assert head[0].startswith(f"# {int(page.name[:4])}. "), page.name
        assert re.match(r"\*Status:\* \w+.*, 20\d\d-\d\d-\d\d", head[2]), page.name


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: str(page.name[:4]))
def test_decisions_have_one_form_and_no_tables(page: Path) -> None:
    labels = re.findall(r"^\*(\w+)[.:]\*", page.read_text(), re.M)
    optional = {"Alternatives", "Measured"} - {*labels}
    form = ["Status", "Decision", "Reason", "Alternatives", "Consequences", "Measured"]
    assert labels == [label for label in form if label not in optional]
    assert "\n|" not in page.read_text(), "measurements are in docs/operations/measure.md"
