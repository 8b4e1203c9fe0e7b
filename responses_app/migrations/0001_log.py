# The first tables: keys, responses, items, events.

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
    ]

    operations = [
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('project', models.CharField(max_length=100)),
                ('prefix', models.CharField(editable=False, help_text='The first characters, to recognise a key by.', max_length=16)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(blank=True, help_text='From this moment on the key is refused.', null=True)),
            ],
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('model', models.CharField(max_length=200)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('in_progress', 'In Progress'), ('completed', 'Completed'), ('incomplete', 'Incomplete'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='in_progress', max_length=12)),
                ('thread', models.CharField(db_index=True, max_length=64)),
                ('previous_uid', models.CharField(blank=True, max_length=64, null=True)),
                ('history', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('metadata', models.JSONField(default=dict)),
                ('error_code', models.CharField(blank=True, default='', max_length=64)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('input_tokens', models.IntegerField(null=True)),
                ('cached_tokens', models.IntegerField(null=True)),
                ('output_tokens', models.IntegerField(null=True)),
                ('reasoning_tokens', models.IntegerField(null=True)),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='responses_app.apikey')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(db_index=True, max_length=128, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('direction', models.CharField(choices=[('input', 'Input'), ('output', 'Output')], max_length=6)),
                ('type', models.CharField(max_length=40)),
                ('body', models.TextField(help_text='JSON; text keeps the order of keys and every character, which jsonb does not.')),
                ('response', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='items', to='responses_app.response')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('type', models.CharField(max_length=64)),
                ('data', models.TextField()),
                ('response', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='responses_app.response')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['project', '-id'], name='response_project'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['model', '-id'], name='response_model'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['status', '-id'], name='response_status'),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.UniqueConstraint(fields=('response', 'number'), name='event_number'),
        ),
    ]
