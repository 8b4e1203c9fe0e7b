"""Images that were fetched: kept beside the items that name their addresses, so that nobody has to fetch them again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet

from responses_app.models import Image, Item
from responses_app.store.log.records import ImageBytes


async def by_keys(keys: Sequence[int]) -> ImageBytes:
    """Those of the items with these primary keys."""
    return await _found(Image.objects.filter(item_id__in=keys))


async def by_ids(project: str, uids: Sequence[str]) -> ImageBytes:
    """Those of the items with these ids; the oldest wins where an id was stored twice, as in `history.find`."""
    return await _found(Image.objects.filter(item__project=project, item__uid__in=uids))


def insert(items: Iterable[Item], images: ImageBytes) -> None:
    """Insert the images of items that were just inserted."""
    by_item: dict[str, list[tuple[str, bytes]]] = {}
    for (uid, url), data in images.items():
        by_item.setdefault(uid, []).append((url, data))
    Image.objects.bulk_create(
        [Image(item=item, url=url, data=data) for item in items for url, data in by_item.get(item.uid, ())]
    )


async def _found(rows: QuerySet[Image]) -> ImageBytes:
    return {
        (uid, url): bytes(data) async for uid, url, data in rows.order_by("-item_id").values_list("item__uid", "url", "data")
    }
