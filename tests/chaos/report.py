"""The table at the end, and the contradictions before it."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from typing import Any

from tests.chaos.findings import Findings

FIRST = 10


def report(case: str, options: Any, findings: Findings) -> str:
    """Format the figures and the contradictions as a table."""
    counts = sorted(findings.counts.items())
    values = asdict(options) if is_dataclass(options) and not isinstance(options, type) else vars(options)
    rows = [
        ("case", case),
        *((name.replace("_", " "), str(value)) for name, value in values.items() if name not in ("case", "folder")),
        *((name, str(count)) for name, count in counts),
        *findings.rows,
        *((f"failed: {message}", str(count)) for message, count in findings.failures.most_common()),
        ("CONTRADICTIONS", str(len(findings.wrong))),
    ]
    width = max(len(name) for name, _ in rows)
    lines = [f"{name:<{width}}  {value}" for name, value in rows]
    wrong = [str(one) for one in findings.wrong[:FIRST]]
    if len(findings.wrong) > FIRST:
        wrong.append(f"... and {len(findings.wrong) - FIRST} more")
    return "\n".join(["", *lines, *([""] if wrong else []), *wrong])
