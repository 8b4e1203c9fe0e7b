"""Add the address of the client to the rows of refused requests, which was in the log alone."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Column with a default of the database, so that the server of the version before goes on meanwhile."""

    dependencies = (("responses_app", "0032_drop_like_indexes"),)
    operations = (
        migrations.AddField("refusedrequest", "address", models.CharField(blank=True, db_default="", default="", max_length=64)),
    )
