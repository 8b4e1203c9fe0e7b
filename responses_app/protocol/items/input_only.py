"""Input-only items: this server stores such items of requests and never generates any."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.base import Family, OutputItem

# Code that another server generated and ran.
PROGRAM: Final = Family(type="program", id_prefix="prog_", output=OutputItem("program_output", "po_"))
ADDITIONAL_TOOLS: Final = Family(type="additional_tools", id_prefix="at_")
CONFIGURATION_UPDATE: Final = Family(type="configuration_update", id_prefix="cfg_")
