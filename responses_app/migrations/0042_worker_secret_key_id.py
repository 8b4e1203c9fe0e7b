"""Hash of the SECRET_KEY of each process, by which hosts with different keys are noticed: a column with a constant default."""

from __future__ import annotations

from django.db import migrations, models

HELP = "A short hash of its SECRET_KEY."


class Migration(migrations.Migration):
    """Adds the column."""

    dependencies = (("responses_app", "0041_takeovers"),)
    operations = (
        migrations.AddField(
            "worker", "secret_key_id", models.CharField(max_length=8, blank=True, default="", db_default="", help_text=HELP)
        ),
    )
