from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0025_webhooks'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='refusedrequest',
            index=models.Index(fields=['project', 'created_at'], name='refused_project_created'),
        ),
    ]
