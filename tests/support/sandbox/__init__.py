"""Helpers for tests of the sandbox."""

from __future__ import annotations
