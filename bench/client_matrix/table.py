"""Markdown tables of results."""

from __future__ import annotations

from collections.abc import Sequence

from bench.client_matrix.outcome import TaskResult
from bench.client_matrix.recording import NAME

MAX_REASON = 160


def format_results(results: Sequence[TaskResult]) -> str:
    """Return a table with a row for each client and task and a column for each model, and below a table of reasons."""
    models = list(dict.fromkeys(result.model for result in results))
    cells = {(result.client, result.task, result.model): result for result in results}
    rows = list(dict.fromkeys((result.client, result.task) for result in results))
    lines = [_row(["client", "task", *models]), "|---" * (2 + len(models)) + "|"]
    for client, task in rows:
        lines.append(_row([client, task, *(_cell(cells.get((client, task, model))) for model in models)]))
    lines.append(_row(["passed", "", *(_passed([result for result in results if result.model == model]) for model in models)]))
    return "\n".join([*lines, *_reasons(results)])


def _cell(result: TaskResult | None) -> str:
    if result is None or result.verdict == "skip":
        return "skip" if result else ""
    return f"{result.verdict}, {result.seconds:.1f} s, {result.tokens[0]} + {result.tokens[1]}"


def _passed(results: Sequence[TaskResult]) -> str:
    tried = [result for result in results if result.verdict != "skip"]
    return f"{sum(result.verdict == 'pass' for result in tried)} of {len(tried)}"


def _reasons(results: Sequence[TaskResult]) -> list[str]:
    failures = [result for result in results if result.reason]
    if not failures:
        return []
    head = ["", _row(["model", "client", "task", "result", "cause", "reason"]), "|---" * 6 + "|"]
    return head + [_row([*_names(one), one.verdict, _cause(one, results), _escape(one.reason)]) for one in failures]


def _names(result: TaskResult) -> list[str]:
    return [result.model, result.client, result.task]


def _cause(result: TaskResult, results: Sequence[TaskResult]) -> str:
    """Return the cause of a failure: the model, if the same task passes with the recording of right answers."""
    if result.verdict != "fail":
        return ""
    recorded = {one.verdict for one in results if _names(one) == [NAME, result.client, result.task]}
    return "model" if "pass" in recorded else "client or server" if "fail" in recorded else "unknown"


def _escape(text: str) -> str:
    """Return the text in a single line, at most MAX_REASON characters, that is no markup of a table."""
    line = " ".join(text.split())
    return (line if len(line) <= MAX_REASON else line[:MAX_REASON] + "…").replace("|", "\\|").replace("<", "&lt;")


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
