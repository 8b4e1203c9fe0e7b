"""Smaller indexes of responses and items, built concurrently: the server of the version before goes on meanwhile.

Hashes instead of the text of ids, no words for the ids in items, and no completed responses in the index of the status.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.contrib.postgres.search import SearchVector, SearchVectorField
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import CharField, F, Func, Value
from django.db.models.functions import Left, Replace

from responses_app.management.index_changes import IndexChange

_BODY = Left("body", 8_000)
_WITHOUT_IDS = Func(_BODY, Value("_[0-9a-f]{48}"), Value(" "), Value("g"), function="regexp_replace", output_field=CharField())


def _search(text: Func) -> GinIndex:
    words = SearchVector(Replace(Replace(text, Value("\\n"), Value(" ")), Value("\\t"), Value(" ")), config="simple")
    project = Func(Value("project "), F("project"), arg_joiner=" || ", template="array_to_tsvector(ARRAY[%(expressions)s])")
    vector = Func(project, words, arg_joiner=" || ", output_field=SearchVectorField(), template="(%(expressions)s)")
    return GinIndex(vector, name="item_search", fastupdate=True, gin_pending_list_limit=4096)


_STATUS = models.Index(fields=["status", "-id"], name="response_status")
_OTHER_STATUS = models.Index(fields=["status", "-id"], name="response_status", condition=~models.Q(status="completed"))
CHANGES = (
    IndexChange(
        "item", models.Index(fields=["uid"], name="responses_app_item_uid_a772c236"), HashIndex(fields=["uid"], name="item_uid")
    ),
    IndexChange(
        "response",
        models.Index(fields=["thread"], name="responses_app_response_thread_ea8fe5bf"),
        HashIndex(fields=["thread"], name="response_thread"),
    ),
    IndexChange("response", _STATUS, _OTHER_STATUS),
    IndexChange("item", _search(_BODY), _search(_WITHOUT_IDS)),
)


def forwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Replace the indexes one after another."""
    for change in CHANGES:
        change.apply(apps.get_model("responses_app", change.model), schema_editor)


def backwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Bring the earlier indexes back."""
    for change in reversed(CHANGES):
        change.reversed().apply(apps.get_model("responses_app", change.model), schema_editor)


class Migration(migrations.Migration):
    """Not atomic, as an index cannot be built concurrently in a transaction."""

    atomic = False
    dependencies = (("responses_app", "0035_recent_usage"),)
    operations = (
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(forwards, backwards)],
            [
                migrations.RemoveIndex("item", "item_search"),
                migrations.RemoveIndex("response", "response_status"),
                migrations.AlterField("item", "uid", models.CharField(max_length=128, verbose_name="id")),
                migrations.AlterField("response", "thread", models.CharField(max_length=64)),
                *(migrations.AddIndex(change.model, change.new) for change in CHANGES),
            ],
        ),
    )
