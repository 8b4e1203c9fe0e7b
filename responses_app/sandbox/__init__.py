"""Sandbox for untrusted code and hostile files: interface, client, and the runner that starts processes in bubblewrap."""

from __future__ import annotations
