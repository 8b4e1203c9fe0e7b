"""The id of the request that made a response, to find the response by."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("responses_app", "0012_words"),)

    operations = (
        migrations.AddField(
            model_name="response",
            name="request_id",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The x-request-id header of its request.",
                max_length=64,
                verbose_name="request id",
            ),
        ),
        migrations.AddIndex(
            model_name="response",
            index=models.Index(fields=["request_id"], name="response_request", opclasses=("varchar_pattern_ops",)),
        ),
        migrations.AlterField(
            model_name="response",
            name="status",
            field=models.CharField(
                choices=[
                    ("queued", "Queued"),
                    ("in_progress", "In progress"),
                    ("completed", "Completed"),
                    ("incomplete", "Incomplete"),
                    ("failed", "Failed"),
                    ("cancelled", "Cancelled"),
                ],
                default="in_progress",
                max_length=12,
            ),
        ),
    )
