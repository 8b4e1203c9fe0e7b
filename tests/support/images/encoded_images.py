"""Small encoded images."""

from __future__ import annotations

from io import BytesIO

from PIL import Image


def drawn(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> bytes:
    """Encode a gradient, which unlike a single colour does not compress to nothing."""
    out = BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(out, kind)
    return out.getvalue()
