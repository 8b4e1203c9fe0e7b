# Responses that continue a conversation, one at a time.

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0003_conversations'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='conversation',
            field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='responses', to='responses_app.conversation'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('conversation',), name='conversation_lock'),
        ),
    ]
