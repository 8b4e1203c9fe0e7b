"""Default of the output tokens of a key: a column without a default, which earlier versions leave null."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    """Adds the column."""

    dependencies = (("responses_app", "0047_project_lists"),)
    operations = (
        migrations.AddField(
            "apikey",
            "default_output_tokens",
            models.PositiveIntegerField(
                null=True,
                blank=True,
                validators=(MinValueValidator(16), MaxValueValidator(10_000_000)),
                help_text="For requests that name no number. Leave blank for the default of the model.",
            ),
        ),
    )
