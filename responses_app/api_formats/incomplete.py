"""Reason and limit of an incomplete response in the other API formats, which have only a few reasons of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def incomplete_details(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return `incomplete_details` as a field for the end of the answer; nothing for a response that is not incomplete."""
    details = response.get("incomplete_details")
    return {"incomplete_details": details} if response["status"] == "incomplete" and details else {}
