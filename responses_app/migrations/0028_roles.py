import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0027_chat_presets'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='apikey',
            name='owner',
            field=models.ForeignKey(blank=True, editable=False, help_text='The person who created the key on a page.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='api_keys', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='membership',
            name='by_provider',
            field=models.BooleanField(default=False, editable=False, help_text='Given by the groups of the sign-in provider.'),
        ),
        # Members had the rights of an admin of the project, which they keep.
        migrations.AddField(
            model_name='membership',
            name='role',
            field=models.PositiveSmallIntegerField(choices=[(1, 'viewer'), (2, 'member'), (3, 'project admin')], default=3),
        ),
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.PositiveSmallIntegerField(choices=[(1, 'viewer'), (2, 'member'), (3, 'project admin')], default=2),
        ),
    ]
