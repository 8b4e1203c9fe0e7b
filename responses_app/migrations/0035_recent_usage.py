"""Add the amounts of the last 60 seconds to the counters of limits.

The server of the version before leaves the column alone and goes on with `used`.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds a column without a rewrite of the table."""

    dependencies = (("responses_app", "0034_packed_events"),)
    operations = (migrations.AddField("limitcounter", "recent", ArrayField(models.BigIntegerField(), null=True)),)
