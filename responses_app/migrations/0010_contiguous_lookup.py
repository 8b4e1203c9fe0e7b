"""Trigger of events: its plan looks up each event by the whole key of the index, whatever the statistics of the table are.

Before, the check was an anti-join. Where autovacuum had analysed the table when most logs were archived, Postgres expected an empty
table and read the whole index in every commit, until the next analysis.
"""

from __future__ import annotations

from django.db import migrations

# A scalar subquery is planned for one row of `added` at a time, so the condition on the key always goes to the index. Joins are not
# considered.
REPLACE_FUNCTION = """
CREATE OR REPLACE FUNCTION responses_app_contiguous() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO off AS $$
BEGIN
    IF EXISTS (
        SELECT FROM added WHERE number > 0 AND (
            SELECT before.number FROM responses_app_event before
            WHERE before.response_id = added.response_id AND before.number = added.number - 1
        ) IS NULL
    ) THEN
        RAISE EXCEPTION 'a number of the log is left out' USING ERRCODE = 'check_violation', CONSTRAINT = 'event_contiguous';
    END IF;
    RETURN NULL;
END
$$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0009_search_index'),
    ]

    # The function before accepts the same events, so going back leaves this one.
    operations = [migrations.RunSQL(REPLACE_FUNCTION, migrations.RunSQL.noop)]
