"""Outputs of server tools for the model."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0003_files'),
    ]

    operations = [
        migrations.CreateModel(
            name='ToolOutput',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('item_uid', models.CharField(db_index=True, max_length=128, verbose_name='item')),
                ('text', models.BinaryField(help_text='UTF-8. A text column could not contain NUL.', null=True)),
                ('images', django.contrib.postgres.fields.ArrayField(base_field=models.BinaryField(), default=list, size=None)),
                ('media_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), default=list, size=None)),
                ('response', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='tool_outputs', to='responses_app.response')),
            ],
            options={
                'ordering': ('-id',),
                'constraints': [models.UniqueConstraint(fields=('response', 'item_uid'), name='tool_output_once')],
            },
        ),
    ]
