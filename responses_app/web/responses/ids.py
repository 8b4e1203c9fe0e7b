"""Search by id: the responses that an id names, by its own id or by the id of its request, its conversation or one of its items."""

from __future__ import annotations

import re
from typing import Final

from django.db.models import QuerySet

from responses_app.models import Item, Response

ID: Final = re.compile(r"([a-z]{2,16})_([A-Za-z0-9_.:-]{1,110})")
# The beginning of an id is enough from so many characters behind its prefix on: those of a minute, as ids begin with the time.
MIN_LENGTH: Final = 8
FIELDS: Final = {"resp": "uid", "req": "request_id", "conv": "conversation__uid"}


def named(rows: QuerySet[Response], text: str) -> QuerySet[Response] | None:
    """Return those of the responses that the id, or the beginning of one, names; None if it names none of them."""
    found = ID.fullmatch(text)
    if found is None:
        return None
    lookup = "startswith" if len(found[2]) >= MIN_LENGTH else "exact"
    field = FIELDS.get(found[1])
    if field is None:
        items = Item.objects.filter(**{f"uid__{lookup}": text}).order_by()
        matching = rows.filter(pk__in=items.values("response_id"))
    else:
        matching = rows.filter(**{f"{field}__{lookup}": text})
    return matching if matching.order_by().exists() else None
