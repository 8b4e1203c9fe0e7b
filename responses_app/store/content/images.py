"""Fetched images, stored beside the items, so that later requests need not fetch again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from django.db.models import QuerySet

from responses_app.models import Image

# Bytes by item id and URL.
ImageBytes: TypeAlias = Mapping[tuple[str, str], bytes]


async def by_keys(keys: Sequence[int]) -> ImageBytes:
    """Load the images of items by primary keys of the items."""
    return await _load(Image.objects.filter(item_id__in=keys))


async def by_ids(project: str, uids: Sequence[str]) -> ImageBytes:
    """Load the images of items by ids of the items. For an id stored twice, the older item wins, as in `history.find`."""
    return await _load(Image.objects.filter(item__project=project, item__uid__in=uids))


def insert(items: Iterable[tuple[int, str]], images: ImageBytes) -> None:
    """Insert images of `items`, which are inserted already: pairs of primary key and id."""
    by_item: dict[str, list[tuple[str, bytes]]] = {}
    for (uid, url), data in images.items():
        by_item.setdefault(uid, []).append((url, data))
    Image.objects.bulk_create(
        [Image(item_id=key, url=url, data=data) for key, uid in items for url, data in by_item.get(uid, ())]
    )


async def _load(rows: QuerySet[Image]) -> ImageBytes:
    return {
        (uid, url): bytes(data) async for uid, url, data in rows.order_by("-item_id").values_list("item__uid", "url", "data")
    }
