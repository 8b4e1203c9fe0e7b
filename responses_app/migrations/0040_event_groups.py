"""Rows of several events, and to workers whether they read these.

Columns with a default of the database, so that the server of the version before goes on meanwhile: as long as one of its processes
lives, each event has a row of its own. The check of the numbers looks at the row before, which may have several events.
"""

from __future__ import annotations

from django.db import migrations, models

# A scalar subquery is planned for one row of `added` at a time, so the condition on the key always goes to the index.
_FUNCTION = """
CREATE OR REPLACE FUNCTION responses_app_contiguous() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO off {settings}AS $$
BEGIN
    IF EXISTS (SELECT FROM added WHERE number > 0 AND ({before}) IS {refused}) THEN
        RAISE EXCEPTION 'a number of the log is left out' USING ERRCODE = 'check_violation', CONSTRAINT = 'event_contiguous';
    END IF;
    RETURN NULL;
END
$$;
"""
# Without bitmaps and sorts, which would read all rows of the log.
_FORWARDS = _FUNCTION.format(
    settings="SET enable_bitmapscan TO off SET enable_sort TO off ",
    before="""
        SELECT before.number + COALESCE(before.events, 1) FROM responses_app_event before
        WHERE before.response_id = added.response_id AND before.number < added.number ORDER BY before.number DESC LIMIT 1
    """,
    refused="DISTINCT FROM added.number",
)
_BACKWARDS = _FUNCTION.format(
    settings="",
    before="""
        SELECT before.number FROM responses_app_event before
        WHERE before.response_id = added.response_id AND before.number = added.number - 1
    """,
    refused="NULL",
)


class Migration(migrations.Migration):
    """Adds columns without a rewrite of the tables, and replaces the function of the trigger."""

    dependencies = (("responses_app", "0039_request_id_index"),)
    operations = (
        migrations.AddField(
            "event",
            "events",
            models.SmallIntegerField(null=True, help_text="Number of events of the row, if there are several."),
        ),
        migrations.AlterField("event", "number", models.IntegerField(help_text="The number of the first event of the row.")),
        migrations.AddField(
            "worker",
            "reads_groups",
            models.BooleanField(db_default=False, default=False, help_text="Reads rows of several events."),
        ),
        migrations.RunSQL(_FORWARDS, _BACKWARDS),
    )
