"""Encrypted secrets of leases, and approvals of MCP calls that were used."""

from __future__ import annotations

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='lease',
            name='secrets',
            field=models.BinaryField(help_text='Encrypted HTTP headers for MCP servers. Deleted with the lease.', null=True),
        ),
        migrations.CreateModel(
            name='Approval',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.CharField(max_length=100)),
                ('request_uid', models.CharField(max_length=128, verbose_name='approval request')),
                ('response_uid', models.CharField(max_length=64, verbose_name='response')),
                ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), db_index=True)),
            ],
            options={
                'ordering': ('-id',),
                'constraints': [models.UniqueConstraint(fields=('project', 'request_uid'), name='approval_once')],
            },
        ),
    ]
