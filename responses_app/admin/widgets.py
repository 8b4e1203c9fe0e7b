"""Widgets of the forms of the admin."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.widgets import AdminSplitDateTime


class LabelledDateTime(AdminSplitDateTime):
    """Inputs of a date and a time with labels for screen readers. Django writes plain text beside these inputs."""

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        """Label both inputs."""
        super().__init__(attrs)
        for widget, label in zip(self.widgets, ("Date", "Time"), strict=True):
            widget.attrs["aria-label"] = label
