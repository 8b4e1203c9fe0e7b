# Conversations, and the places of items in them.

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0002_background'),
    ]

    operations = [
        migrations.CreateModel(
            name='Conversation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('metadata', models.TextField(default='{}', help_text='JSON, as text for the same reason as the body of an item.')),
                ('created_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Entry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=128, verbose_name='item id')),
                ('conversation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='responses_app.conversation')),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='responses_app.item')),
            ],
            options={
                'verbose_name_plural': 'entries',
                'ordering': ('-id',),
            },
        ),
        migrations.AddIndex(
            model_name='entry',
            index=models.Index(fields=['conversation', 'id'], name='entry_place'),
        ),
        migrations.AddConstraint(
            model_name='entry',
            constraint=models.UniqueConstraint(fields=('conversation', 'uid'), name='entry_item'),
        ),
    ]
