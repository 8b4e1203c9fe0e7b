"""Indexes of prompts that share tokens, built concurrently: the server of the version before goes on meanwhile."""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from responses_app.management.index_changes import IndexChange

INDEXES = (
    models.Index(fields=["base"], name="request_base", condition=models.Q(base__isnull=False)),
    models.Index(fields=["opening", "-response"], name="request_opening", condition=models.Q(opening__isnull=False)),
)


def forwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Build the indexes; a repeated call continues after a failure."""
    model = apps.get_model("responses_app", "storedrequest")
    for index in INDEXES:
        IndexChange("storedrequest", index, index).apply(model, schema_editor)


def backwards(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the indexes."""
    for index in INDEXES:
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {index.name}")


class Migration(migrations.Migration):
    """Not atomic, as an index cannot be built concurrently in a transaction."""

    atomic = False
    dependencies = (("responses_app", "0037_shared_prompts"),)
    operations = (
        migrations.SeparateDatabaseAndState(
            [migrations.RunPython(forwards, backwards)], [migrations.AddIndex("storedrequest", index) for index in INDEXES]
        ),
    )
