"""Token ids in, token ids out, and a way to stop: the three engines behind one border."""

from __future__ import annotations

from responses_app.engines.registry import open_engine

__all__ = ["open_engine"]
