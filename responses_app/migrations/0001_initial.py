"""The whole schema: tables and indexes as in `responses_app.models`, and two statements that Django cannot express."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

# Rejects an event whose predecessor in the log is missing. The planner settings avoid joins over whole tables: a commit adds few
# rows to a log of many.
CREATE_TRIGGER = """
CREATE FUNCTION responses_app_contiguous() RETURNS trigger LANGUAGE plpgsql
SET enable_hashjoin TO off SET enable_mergejoin TO off SET enable_seqscan TO off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM added WHERE number > 0 AND NOT EXISTS (
            SELECT FROM responses_app_event before
            WHERE before.response_id = added.response_id AND before.number = added.number - 1
        )
    ) THEN
        RAISE EXCEPTION 'a number of the log is left out' USING ERRCODE = 'check_violation', CONSTRAINT = 'event_contiguous';
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER event_contiguous AFTER INSERT ON responses_app_event
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION responses_app_contiguous();
"""
DROP_TRIGGER = """
DROP TRIGGER event_contiguous ON responses_app_event;
DROP FUNCTION responses_app_contiguous();
"""
# Pages are compressed already, so Postgres need not try.
STORE_UNCOMPRESSED = "ALTER TABLE responses_app_logpage ALTER COLUMN data SET STORAGE EXTERNAL"
STORE_COMPRESSED = "ALTER TABLE responses_app_logpage ALTER COLUMN data SET STORAGE EXTENDED"


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ApiKey',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('project', models.CharField(max_length=100)),
                ('prefix', models.CharField(editable=False, help_text='The first characters of the key.', max_length=16)),
                ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('revoked_at', models.DateTimeField(blank=True, help_text='The key is refused from this time on.', null=True)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, help_text='To the minute.', null=True)),
                ('requests_per_minute', models.PositiveIntegerField(blank=True, help_text='Leave blank for no limit.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100000)])),
                ('max_concurrent', models.PositiveIntegerField(blank=True, help_text='Responses that have not ended, in all processes. Leave blank for no limit.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(10000)], verbose_name='concurrent responses')),
                ('allowed_models', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), blank=True, db_default=[], default=list, help_text='Leave blank to allow all models.', size=None)),
                ('rate_limit_until', models.DateTimeField(editable=False, help_text='When all requests of a minute are available again.', null=True)),
            ],
            options={
                'verbose_name': 'API key',
            },
        ),
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
            name='Item',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(db_index=True, max_length=128, verbose_name='id')),
                ('project', models.CharField(max_length=100)),
                ('direction', models.CharField(choices=[('input', 'Input'), ('output', 'Output')], max_length=6)),
                ('type', models.CharField(max_length=40)),
                ('body', models.TextField(help_text='JSON; text keeps the order of keys and every character, which jsonb does not.')),
                ('orphaned_at', models.DateTimeField(editable=False, help_text='When it was taken out of its last conversation and belonged to no response.', null=True)),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Response',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=64, unique=True, verbose_name='id')),
                ('request_id', models.CharField(blank=True, db_default='', default='', help_text='The x-request-id header of its request.', max_length=64, verbose_name='request id')),
                ('project', models.CharField(max_length=100)),
                ('model', models.CharField(max_length=200)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('in_progress', 'In progress'), ('completed', 'Completed'), ('incomplete', 'Incomplete'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='in_progress', max_length=12)),
                ('background', models.BooleanField(default=False, help_text='Runs whether or not a client is connected, and can be cancelled.')),
                ('streamed', models.BooleanField(default=False, help_text='Requested as a stream.')),
                ('stored', models.BooleanField(default=True, help_text='If not, it is kept for a short time only, for polling.')),
                ('thread', models.CharField(db_index=True, max_length=64)),
                ('previous_uid', models.CharField(blank=True, max_length=64, null=True)),
                ('history', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), default=list, size=None)),
                ('metadata', models.JSONField(default=dict)),
                ('error_code', models.CharField(blank=True, default='', max_length=64)),
                ('created_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('input_tokens', models.IntegerField(null=True)),
                ('cached_tokens', models.IntegerField(null=True)),
                ('output_tokens', models.IntegerField(null=True)),
                ('reasoning_tokens', models.IntegerField(null=True)),
                ('time_to_first_token_ms', models.IntegerField(help_text='Milliseconds to the first token.', null=True, verbose_name='first token')),
                ('tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), db_default=[], default=list, help_text='Tools that the model called.', size=None)),
                ('log_form', models.SmallIntegerField(choices=[(0, 'events'), (1, 'pages'), (2, 'pages without deltas')], db_default=0, default=0, help_text='How the events are stored.', verbose_name='log')),
                ('conversation', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='responses', to='responses_app.conversation')),
                ('key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, to='responses_app.apikey')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Worker',
            fields=[
                ('uid', models.UUIDField(primary_key=True, serialize=False, verbose_name='id')),
                ('name', models.CharField(max_length=200)),
                ('served_models', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=200), default=list, help_text='The models that it serves.', size=None)),
                ('heartbeat_at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-heartbeat_at',),
            },
        ),
        migrations.CreateModel(
            name='ConcurrencySlot',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('worker', models.UUIDField()),
                ('key', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='slots', to='responses_app.apikey')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Image',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('url', models.TextField()),
                ('data', models.BinaryField()),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='images', to='responses_app.item')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Lease',
            fields=[
                ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='lease', serialize=False, to='responses_app.response')),
                ('worker', models.UUIDField(db_index=True, null=True)),
                ('epoch', models.IntegerField(default=1)),
                ('model', models.CharField(max_length=200)),
                ('waiting', models.BooleanField(default=False, help_text='Not started; starts when a process has capacity.')),
                ('cancelled', models.BooleanField(default=False, help_text='The owner ends the response.')),
                ('priority', models.IntegerField(default=0)),
                ('last_number', models.IntegerField(default=-1, help_text='The number of the last event at the latest takeover.')),
                ('stalled_takeovers', models.IntegerField(default=0, help_text='Consecutive takeovers without a new event.')),
            ],
            options={
                'ordering': ('-response',),
            },
        ),
        migrations.CreateModel(
            name='StoredRequest',
            fields=[
                ('response', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='stored_request', serialize=False, to='responses_app.response')),
                ('create_request', models.TextField(help_text='JSON, without the input, which is in the items.')),
                ('prompt_tokens', models.BinaryField(help_text='Token ids, four bytes each, little-endian.')),
            ],
        ),
        migrations.AddField(
            model_name='item',
            name='response',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='items', to='responses_app.response'),
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.IntegerField()),
                ('type', models.CharField(max_length=64)),
                ('data', models.TextField()),
                ('ms', models.IntegerField(db_default=0, default=0, help_text='Milliseconds since the response was created.', verbose_name='time')),
                ('tokens', models.BinaryField(help_text='The tokens generated since the event before; a resumed run replays them.', null=True)),
                ('response', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='responses_app.response')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='LoginAttempt',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account', models.CharField(max_length=64)),
                ('address', models.CharField(max_length=64)),
                ('at', models.DateTimeField()),
            ],
            options={
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['account', 'at'], name='login_attempt_account'), models.Index(fields=['address', 'at'], name='login_attempt_address')],
            },
        ),
        migrations.CreateModel(
            name='LogPage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('first', models.IntegerField()),
                ('last', models.IntegerField()),
                ('data', models.BinaryField()),
                ('response', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='pages', to='responses_app.response')),
            ],
            options={
                'ordering': ('-id',),
            },
        ),
        migrations.CreateModel(
            name='Membership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('project', models.CharField(max_length=100)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('project', 'id'),
            },
        ),
        migrations.CreateModel(
            name='ConversationItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.CharField(max_length=128, verbose_name='item id')),
                ('conversation', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='conversation_items', to='responses_app.conversation')),
                ('item', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='conversation_items', to='responses_app.item')),
            ],
            options={
                'verbose_name': 'conversation item',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['conversation', 'id'], name='conversation_item_order')],
                'constraints': [models.UniqueConstraint(fields=('conversation', 'uid'), name='conversation_item_unique')],
            },
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['project', '-id'], name='response_project'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['log_form', 'ended_at'], name='response_log_form'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['model', '-id'], name='response_model'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['status', '-id'], name='response_status'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('stored', False)), fields=['ended_at'], name='response_temporary'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['created_at'], name='response_created'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(fields=['request_id'], name='response_request', opclasses=('varchar_pattern_ops',)),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('ended_at', None)), fields=['key'], name='response_running'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=models.Index(condition=models.Q(('conversation__isnull', False)), fields=['conversation', '-id'], name='response_conversation'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=django.contrib.postgres.indexes.GinIndex(condition=models.Q(('tools', []), _negated=True), fields=['tools'], name='response_tools'),
        ),
        migrations.AddIndex(
            model_name='response',
            index=django.contrib.postgres.indexes.GinIndex(django.contrib.postgres.indexes.OpClass('metadata', 'jsonb_path_ops'), condition=models.Q(('metadata', {}), _negated=True), name='response_metadata'),
        ),
        migrations.AddConstraint(
            model_name='response',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('conversation',), name='conversation_lock'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=django.contrib.postgres.indexes.GinIndex(models.Func(models.Func(models.Value('project '), models.F('project'), arg_joiner=' || ', template='array_to_tsvector(ARRAY[%(expressions)s])'), django.contrib.postgres.search.SearchVector(django.db.models.functions.text.Replace(django.db.models.functions.text.Replace(django.db.models.functions.text.Left('body', 8000), models.Value('\\n'), models.Value(' ')), models.Value('\\t'), models.Value(' ')), config='simple'), arg_joiner=' || ', output_field=django.contrib.postgres.search.SearchVectorField(), template='(%(expressions)s)'), fastupdate=True, gin_pending_list_limit=512, name='item_search'),
        ),
        migrations.AddIndex(
            model_name='item',
            index=models.Index(condition=models.Q(('orphaned_at__isnull', False)), fields=['orphaned_at'], name='item_orphans'),
        ),
        migrations.AddConstraint(
            model_name='event',
            constraint=models.UniqueConstraint(fields=('response', 'number'), name='event_number'),
        ),
        migrations.AddConstraint(
            model_name='logpage',
            constraint=models.UniqueConstraint(fields=('response', 'first'), name='page_first'),
        ),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.UniqueConstraint(fields=('user', 'project'), name='membership_once'),
        ),
        migrations.RunSQL(CREATE_TRIGGER, DROP_TRIGGER),
        migrations.RunSQL(STORE_UNCOMPRESSED, STORE_COMPRESSED),
    ]
