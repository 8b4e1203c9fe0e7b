"""Compaction: earlier context as an encrypted summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import Delta, Family, Item


@dataclass(slots=True)
class Compaction(Delta):
    """A summary of earlier context, encrypted."""

    encrypted_content: str


def _initial(delta: Compaction, _new_id: IdFactory) -> Item:
    # Whole from the start: the encrypted text is the same in every snapshot.
    return {"encrypted_content": delta.encrypted_content}


COMPACTION: Final = Family(type="compaction", id_prefix="cmp_", opened_by={Compaction: ""}, initial=_initial, whole=True)
