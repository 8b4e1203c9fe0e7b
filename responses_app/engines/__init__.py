"""Inference engines behind a common interface: in-process vLLM, vLLM over HTTP, replay of a tape."""

from __future__ import annotations

from responses_app.engines.registry import open_engine

__all__ = ["open_engine"]
