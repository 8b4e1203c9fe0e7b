"""Vector stores, files in vector stores, batches and chunks."""

from __future__ import annotations

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import responses_app.models.vector_stores
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0004_tool_outputs'),
    ]

    operations = [
        migrations.CreateModel(
            name='VectorStore',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('name', models.CharField(blank=True, default='', max_length=512)),
                ('description', models.TextField(blank=True, default='')),
                ('metadata', models.TextField(default='{}', help_text='JSON, as text for the same reason as the body of an item.')),
                ('text_config', models.CharField(help_text='Configuration of Postgres for the words of the files.', max_length=63, verbose_name='text search configuration')),
                ('expires_after_days', models.PositiveIntegerField(blank=True, help_text='Days after the last use until the store expires. Leave blank for never.', null=True)),
                ('created_at', models.DateTimeField()),
                ('last_active_at', models.DateTimeField()),
            ],
            options={
                'verbose_name': 'vector store',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['project', '-id'], name='vector_store_project')],
            },
        ),
        migrations.CreateModel(
            name='FileBatch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('created_at', models.DateTimeField()),
                ('cancelled_at', models.DateTimeField(blank=True, null=True)),
                ('store', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='responses_app.vectorstore')),
            ],
            options={
                'verbose_name': 'file batch',
                'verbose_name_plural': 'file batches',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='VectorStoreFile',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('status', models.CharField(choices=[('in_progress', 'In progress'), ('completed', 'Completed'), ('cancelled', 'Cancelled'), ('failed', 'Failed')], default='in_progress', max_length=12)),
                ('attributes', models.JSONField(default=dict)),
                ('chunk_tokens', models.PositiveIntegerField(help_text='Tokens of a chunk, at most.')),
                ('overlap_tokens', models.PositiveIntegerField(help_text='Tokens that a chunk shares with the next chunk.')),
                ('usage_bytes', models.BigIntegerField(default=0, help_text='Bytes of the text and of the vectors of all chunks.')),
                ('error_code', models.CharField(blank=True, default='', max_length=20)),
                ('error_message', models.TextField(blank=True, default='')),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('claim', models.UUIDField(editable=False, null=True)),
                ('due_at', models.DateTimeField(help_text="Beginning of the next attempt, or the end of the present worker's lease.")),
                ('created_at', models.DateTimeField()),
                ('batch', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='store_files', to='responses_app.filebatch')),
                ('file', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='store_files', to='responses_app.file')),
                ('store', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='store_files', to='responses_app.vectorstore')),
            ],
            options={
                'verbose_name': 'file in a vector store',
                'verbose_name_plural': 'files in vector stores',
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='FileChunk',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.PositiveIntegerField(help_text='Number of the chunk in the file, from 0.')),
                ('start', models.PositiveIntegerField(help_text='First character of the chunk in the text of the file, from 0.')),
                ('tokens', models.PositiveIntegerField()),
                ('text', models.TextField()),
                ('search', django.contrib.postgres.search.SearchVectorField()),
                ('embedding', django.contrib.postgres.fields.ArrayField(base_field=responses_app.models.vector_stores.RealField(), null=True, size=None)),
                ('store', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='responses_app.vectorstore')),
                ('store_file', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='chunks', to='responses_app.vectorstorefile')),
            ],
            options={
                'ordering': ('store_file', 'position'),
            },
        ),
        migrations.AddIndex(
            model_name='vectorstorefile',
            index=models.Index(condition=models.Q(('status', 'in_progress')), fields=['due_at'], name='store_file_due'),
        ),
        migrations.AddIndex(
            model_name='vectorstorefile',
            index=models.Index(fields=['store', '-id'], name='store_file_order'),
        ),
        migrations.AddConstraint(
            model_name='vectorstorefile',
            constraint=models.UniqueConstraint(fields=('store', 'file'), name='store_file_unique'),
        ),
        migrations.AddIndex(
            model_name='filechunk',
            index=django.contrib.postgres.indexes.GinIndex(fastupdate=False, fields=['search'], name='chunk_search'),
        ),
        migrations.AddConstraint(
            model_name='filechunk',
            constraint=models.UniqueConstraint(fields=('store_file', 'position'), name='chunk_unique'),
        ),
    ]
