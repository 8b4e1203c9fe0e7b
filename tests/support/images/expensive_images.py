"""Images of small size that take long to decode."""

from __future__ import annotations

from functools import cache
from io import BytesIO

from PIL import Image

_START_OF_SCAN = b"\xff\xda"


@cache
def progressive(scans: int, side: int = 7000) -> bytes:
    """Create a single-colour JPEG whose last scan is repeated up to `scans` scans."""
    out = BytesIO()
    Image.new("L", (side, side), 100).save(out, "JPEG", progressive=True, quality=50)
    whole = out.getvalue()
    at = whole.rindex(_START_OF_SCAN)
    last, end = whole[at:-2], whole[-2:]
    return whole[:at] + last * (scans - whole.count(_START_OF_SCAN) + 1) + end


@cache
def segmented(count: int) -> bytes:
    out = BytesIO()
    Image.new("L", (1, 1)).save(out, "JPEG")
    whole = out.getvalue()
    return whole[:2] + b"\xff\xfe\0\2" * count + whole[2:]
