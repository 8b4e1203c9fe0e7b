import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0019_reruns'),
    ]

    operations = [
        migrations.CreateModel(
            name='RefusedRequest',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField()),
                ('request_id', models.CharField(max_length=64)),
                ('project', models.CharField(blank=True, default='', max_length=100)),
                ('method', models.CharField(max_length=16)),
                ('path', models.CharField(max_length=200)),
                ('status', models.SmallIntegerField()),
                ('code', models.CharField(blank=True, default='', max_length=64)),
                ('message', models.CharField(max_length=300)),
                ('count', models.IntegerField(default=1)),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='refused_requests', to='responses_app.apikey')),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [
                    models.Index(fields=['project', '-id'], name='refused_project'),
                    models.Index(fields=['created_at'], name='refused_created'),
                ],
            },
        ),
    ]
