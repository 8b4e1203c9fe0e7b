"""Take-overs of a response, which the page of the response shows: a column without a default, added without a rewrite."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

HELP = "The number of the last event before each take-over by another process. Empty for nearly all responses."


class Migration(migrations.Migration):
    """Adds the column."""

    dependencies = (("responses_app", "0040_event_groups"),)
    operations = (
        migrations.AddField("response", "takeovers", ArrayField(models.IntegerField(), blank=True, null=True, help_text=HELP)),
    )
