"""Start of the runner: account, packages, private mounts, and the reasons why a machine allows no sandbox."""

from __future__ import annotations
