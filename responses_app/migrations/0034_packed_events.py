"""Add the packed form of events, and to workers whether they read it.

Columns with a default of the database, so that the server of the version before goes on meanwhile: as long as one of its processes
lives, no process packs.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds columns without a rewrite of the tables."""

    dependencies = (("responses_app", "0033_refused_request_address"),)
    operations = (
        migrations.AddField("event", "packed", models.BinaryField(null=True)),
        migrations.AddField(
            "worker", "reads_packed", models.BooleanField(db_default=False, default=False, help_text="Reads packed events.")
        ),
    )
