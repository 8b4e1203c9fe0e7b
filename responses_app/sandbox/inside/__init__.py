"""Programs inside the sandbox. Each file runs alone, with the standard library and the packages of the sandbox."""

from __future__ import annotations
