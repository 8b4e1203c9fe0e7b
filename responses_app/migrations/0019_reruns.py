from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0018_lease_start'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='rerun_of',
            field=models.CharField(blank=True, db_default='', default='', help_text='The id of the response whose request was run again.', max_length=64),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('rerun_of', ''), _negated=True), fields=['rerun_of'], name='response_rerun'),
        ),
    ]
