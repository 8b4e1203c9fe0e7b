# Background responses, and those that are kept for a while only.

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0001_log'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='background',
            field=models.BooleanField(default=False, help_text='It runs whether anybody listens or not, and can be cancelled.'),
        ),
        migrations.AddField(
            model_name='response',
            name='stored',
            field=models.BooleanField(default=True, help_text='False: kept for a while only, so that it can be polled.'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('stored', False)), fields=['ended_at'], name='response_temporary'),
        ),
    ]
