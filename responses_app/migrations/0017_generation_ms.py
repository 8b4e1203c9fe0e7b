from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0016_round_prompts'),
    ]

    operations = [
        migrations.AddField(
            model_name='response',
            name='generation_ms',
            field=models.IntegerField(help_text='Milliseconds in which the output tokens were generated, without tools and prompts.', null=True, verbose_name='generation'),
        ),
    ]
