"""Settings of each process that all need alike, by which differences are noticed: a column with a constant default."""

from __future__ import annotations

from django.db import migrations, models

HELP = "Settings that all processes need alike."


class Migration(migrations.Migration):
    """Adds the column."""

    dependencies = (("responses_app", "0042_worker_secret_key_id"),)
    operations = (
        migrations.AddField(
            "worker", "shared_settings", models.JSONField(default=dict, blank=True, db_default={}, help_text=HELP)
        ),
    )
