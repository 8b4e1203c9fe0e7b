"""Files of the Files API."""

from __future__ import annotations


from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0002_approvals_and_secrets'),
    ]

    operations = [
        migrations.CreateModel(
            name='File',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('filename', models.CharField(help_text='As sent, without folders.', max_length=255)),
                ('purpose', models.CharField(choices=[('assistants', 'Assistants'), ('batch', 'Batch'), ('fine-tune', 'Fine Tune'), ('vision', 'Vision'), ('user_data', 'User data'), ('evals', 'Evals')], max_length=16)),
                ('bytes', models.BigIntegerField(help_text='Bytes.', verbose_name='size')),
                ('created_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField(blank=True, help_text='The file is deleted after this time.', null=True)),
                ('status', models.CharField(choices=[('uploaded', 'Uploaded'), ('processed', 'Processed'), ('error', 'Error')], default='processed', max_length=12)),
                ('status_details', models.TextField(blank=True, default='', help_text='Reason of the status `error`.')),
                ('storage_name', models.CharField(editable=False, max_length=200, unique=True, verbose_name='name in the storage')),
                ('sha256', models.CharField(editable=False, max_length=64, verbose_name='SHA-256')),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['project', '-id'], name='file_project'), models.Index(condition=models.Q(('expires_at__isnull', False)), fields=['expires_at'], name='file_expiry')],
            },
        ),
    ]
