"""Settings of hypothesis, also where pytest starts in this folder and does not see the conftest above."""

from __future__ import annotations

from tests.support import hypothesis_profile

hypothesis_profile.load()
