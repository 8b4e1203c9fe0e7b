"""The engines: a tape, a real vLLM in this process, a real one elsewhere."""

from __future__ import annotations
