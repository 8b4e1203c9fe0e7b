"""Longer list of new entries of the full-text index: maintenance merges the list, and commits do only when it is full."""

from __future__ import annotations

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.functions.text
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0008_log_tables'),
    ]

    # Django would build the index anew.
    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "ALTER INDEX item_search SET (gin_pending_list_limit = 4096)",
                    "ALTER INDEX item_search SET (gin_pending_list_limit = 512)",
                ),
            ],
            state_operations=[
                migrations.RemoveIndex(model_name='item', name='item_search'),
                migrations.AddIndex(
                    model_name='item',
                    index=django.contrib.postgres.indexes.GinIndex(models.Func(models.Func(models.Value('project '), models.F('project'), arg_joiner=' || ', template='array_to_tsvector(ARRAY[%(expressions)s])'), django.contrib.postgres.search.SearchVector(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Left('body', 8000), models.Value('\\n'), models.Value(' ')), models.Value('\\t'), models.Value(' ')), config='simple'), arg_joiner=' || ', output_field=django.contrib.postgres.search.SearchVectorField(), template='(%(expressions)s)'), fastupdate=True, gin_pending_list_limit=4096, name='item_search'),
                ),
            ],
        ),
    ]
