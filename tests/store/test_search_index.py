"""Full-text index of items: new entries are merged once."""

from __future__ import annotations

from django.test import TransactionTestCase

from responses_app.models import Item
from responses_app.store.search_index import merge_new_entries


class SearchIndexTest(TransactionTestCase):
    """Against the real database."""

    def test_new_entries_are_merged_once(self) -> None:
        merge_new_entries()
        Item.objects.create(uid="msg_1", project="p", direction="input", type="message", body='{"text":"fox"}')
        self.assertEqual(merge_new_entries(), 1)
        self.assertEqual(merge_new_entries(), 0)
