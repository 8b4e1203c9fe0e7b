"""Labels and help texts for the admin, in plain words. Nothing changes in the database."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = (("responses_app", "0014_words_of_projects"),)

    operations = (
        migrations.AlterModelOptions(
            name="apikey",
            options={"verbose_name": "API key"},
        ),
        migrations.AlterModelOptions(
            name="entry",
            options={"ordering": ("-id",), "verbose_name": "conversation item"},
        ),
        migrations.AlterField(
            model_name="apikey",
            name="allowed_models",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200),
                blank=True,
                db_default=[],
                default=list,
                help_text="Leave blank to allow all models.",
                size=None,
            ),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="at_a_time",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Responses that have not ended, in all processes. Leave blank for no limit.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10000)],
                verbose_name="concurrent responses",
            ),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="prefix",
            field=models.CharField(editable=False, help_text="The first characters of the key.", max_length=16),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="requests_per_minute",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="Leave blank for no limit.",
                null=True,
                validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100000)],
            ),
        ),
        migrations.AlterField(
            model_name="apikey",
            name="revoked_at",
            field=models.DateTimeField(blank=True, help_text="The key is refused from this time on.", null=True),
        ),
        migrations.AlterField(
            model_name="response",
            name="background",
            field=models.BooleanField(
                default=False, help_text="Runs whether or not a client is connected, and can be cancelled."
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="detail",
            field=models.SmallIntegerField(
                choices=[(0, "events"), (1, "pages"), (2, "pages without deltas")],
                db_default=0,
                default=0,
                help_text="How the events are stored.",
                verbose_name="log",
            ),
        ),
        migrations.AlterField(
            model_name="response",
            name="first_ms",
            field=models.IntegerField(help_text="Milliseconds to the first token.", null=True, verbose_name="first token"),
        ),
        migrations.AlterField(
            model_name="response",
            name="stored",
            field=models.BooleanField(default=True, help_text="If not, it is kept for a short time only, for polling."),
        ),
        migrations.AlterField(
            model_name="response",
            name="streamed",
            field=models.BooleanField(default=False, help_text="Requested as a stream."),
        ),
        migrations.AlterField(
            model_name="response",
            name="tools",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=200),
                db_default=[],
                default=list,
                help_text="Tools that the model called.",
                size=None,
            ),
        ),
    )
