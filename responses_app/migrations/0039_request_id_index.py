"""Smaller index of the ids of HTTP requests, built concurrently: the server of the version before goes on meanwhile.

That server finds a response by the id of a request without an index until it ends.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.contrib.postgres.indexes import OpClass
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models.functions import Left

from responses_app.management.index_changes import IndexChange

CHANGE = IndexChange(
    "response",
    models.Index(fields=["request_id"], name="response_request", opclasses=["varchar_pattern_ops"]),
    models.Index(OpClass(Left("request_id", 20), "text_pattern_ops"), name="response_request"),
)


def forwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Replace the index."""
    CHANGE.apply(apps.get_model("responses_app", CHANGE.model), schema_editor)


def backwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Bring the earlier index back."""
    CHANGE.reversed().apply(apps.get_model("responses_app", CHANGE.model), schema_editor)


class Migration(migrations.Migration):
    """Not atomic, as an index cannot be built concurrently in a transaction."""

    atomic = False
    dependencies = (("responses_app", "0038_shared_prompt_indexes"),)
    operations = (
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(forwards, backwards)],
            [migrations.RemoveIndex("response", "response_request"), migrations.AddIndex("response", CHANGE.new)],
        ),
    )
