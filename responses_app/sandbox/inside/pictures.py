"""PNG images of the current run."""

from __future__ import annotations

MAX_PICTURES = 20
_pending: list[bytes] = []


def add(image: bytes | None) -> None:
    """Add a PNG image to the images of the run, up to MAX_PICTURES."""
    if image and len(_pending) < MAX_PICTURES:
        _pending.append(image)


def take() -> list[bytes]:
    """Return the images of the run, and clear the list."""
    images, _pending[:] = list(_pending), []
    return images
