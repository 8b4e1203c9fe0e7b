"""Limits of the extraction."""

from __future__ import annotations

from typing import Final

from responses_app.workers.limits import Limits

MIB: Final = 1024 * 1024
# Bytes of a file that is read.
MAX_FILE_BYTES: Final = 64 * MIB
# Characters of the text of a file; the rest is cut.
MAX_CHARS: Final = 10_000_000
# Pages of a PDF, and slides of a presentation.
MAX_PAGES: Final = 5000
# Files in an Office document, which is a ZIP archive, and their bytes after decompression.
MAX_ARCHIVE_FILES: Final = 10_000
MAX_EXPANDED_BYTES: Final = 256 * MIB
# Limits of the worker process, for one file.
PROCESS: Final = Limits(cpu_s=60, wall_s=90.0, memory_bytes=1536 * MIB)
