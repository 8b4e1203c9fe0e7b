"""The id of a stored response."""

from __future__ import annotations

import re

UID = re.compile(r'class="open mono" href="/responses/([\w-]+)"')
