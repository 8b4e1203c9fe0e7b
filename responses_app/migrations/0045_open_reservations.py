"""Reservations of running responses without a log, which are given back when their process has died."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds an empty table."""

    dependencies = (("responses_app", "0044_embedding_model"),)
    operations = (
        migrations.CreateModel(
            name="OpenReservation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("worker", models.UUIDField()),
                ("differences", models.JSONField()),
            ],
            options={"ordering": ("-id",)},
        ),
    )
