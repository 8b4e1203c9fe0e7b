"""The table at the end, and the contradictions before it."""

from __future__ import annotations

from tests.chaos.findings import Findings
from tests.chaos.options import Options

FIRST = 10


def report(options: Options, findings: Findings) -> str:
    """Format the figures and the contradictions as a table."""
    counts = sorted(findings.counts.items())
    rows = [
        ("seed, engine, web processes", f"{options.seed}, {options.engine}, {options.web}"),
        ("responses asked for", str(options.responses)),
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
