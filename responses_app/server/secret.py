"""The SECRET_KEY of a server whose owner did not set one: made once, kept in the data folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from responses_app.server.data import keep


def secret_key(data_dir: Path) -> str:
    """The key in `data_dir/secret_key`, made at the first call. API keys are hashed with it: losing it revokes them all."""
    return keep(data_dir / "secret_key", secrets.token_urlsafe(48))
