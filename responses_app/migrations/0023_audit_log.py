from django.db import migrations, models


# The maintenance sets this variable in the transaction that deletes old entries.
CREATE_TRIGGER = """
CREATE FUNCTION responses_app_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('responses_app.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'entries of the audit log are not changed or deleted' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON responses_app_auditentry
FOR EACH ROW EXECUTE FUNCTION responses_app_audit_append_only();
"""
DROP_TRIGGER = """
DROP TRIGGER audit_append_only ON responses_app_auditentry;
DROP FUNCTION responses_app_audit_append_only();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0022_saved_views'),
    ]

    operations = [
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField()),
                ('actor_kind', models.CharField(choices=[('user', 'User'), ('key', 'Key'), ('command', 'Command'), ('visitor', 'Visitor')], max_length=8)),
                ('actor_id', models.BigIntegerField(help_text='The primary key of the account or of the API key.', null=True)),
                ('actor', models.CharField(help_text='The name at that time.', max_length=150)),
                ('address', models.CharField(max_length=64)),
                ('action', models.CharField(max_length=40)),
                ('object', models.CharField(max_length=200)),
                ('project', models.CharField(max_length=100)),
                ('outcome', models.CharField(choices=[('success', 'Success'), ('failure', 'Failure'), ('refused', 'Refused')], max_length=8)),
            ],
            options={
                'verbose_name': 'audit log entry',
                'verbose_name_plural': 'audit log entries',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['at'], name='audit_at'), models.Index(fields=['action', 'object', 'at'], name='audit_object')],
            },
        ),
        migrations.RunSQL(CREATE_TRIGGER, DROP_TRIGGER),
    ]
