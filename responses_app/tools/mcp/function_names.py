"""Names of MCP tools as functions of the model."""

from __future__ import annotations

import re
from hashlib import sha256

MAX_LENGTH = 64
HASH_LENGTH = 8


def function_name(label: str, name: str) -> str:
    """Return the function name of the tool `name` of the server `label`: at most 64 characters of `[a-zA-Z0-9_-]`.

    A name that had to be changed ends with a hash of label and name, so two tools never have the same name.
    """
    plain = f"{label}__{name}"
    safe = re.sub(r"[^a-zA-Z0-9_-]", "_", plain)
    # The first "__" ends the label, unless the label has one or makes one with the underscores behind.
    if safe == plain and len(safe) <= MAX_LENGTH and "__" not in f"{label}_":
        return safe
    digest = sha256(f"{label}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    return f"{safe[: MAX_LENGTH - HASH_LENGTH - 1]}_{digest}"
