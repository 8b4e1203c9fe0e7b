"""Tests of the engines: replay, vLLM in this process, vLLM over HTTP."""

from __future__ import annotations
