"""Check of the conversations in which responses begin."""

from __future__ import annotations

from django.db import migrations

# The lock on the conversation waits for additions that are not committed yet. Each statement of the function reads what was committed
# before that statement, so the second one reads these additions. The last item is enough, as items are only added behind others.
CREATE = """
CREATE FUNCTION responses_app_check_conversations(uids text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    opened record;
BEGIN
    FOR opened IN
        SELECT conversation_id AS conversation, history[cardinality(history)] AS last_item FROM responses_app_response
        WHERE uid = ANY(uids) ORDER BY conversation_id
    LOOP
        PERFORM FROM responses_app_conversation WHERE id = opened.conversation FOR KEY SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the conversation % is deleted', opened.conversation
                USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'conversation_deleted';
        END IF;
        IF opened.last_item IS DISTINCT FROM (
            SELECT item_id FROM responses_app_conversationitem WHERE conversation_id = opened.conversation ORDER BY id DESC LIMIT 1
        ) THEN
            RAISE EXCEPTION 'the conversation % has changed since it was read', opened.conversation
                USING ERRCODE = 'check_violation', CONSTRAINT = 'conversation_lock';
        END IF;
    END LOOP;
    RETURN TRUE;
END
$$
"""
DROP = "DROP FUNCTION responses_app_check_conversations(text[])"


class Migration(migrations.Migration):
    """Adds a function."""

    dependencies = (("responses_app", "0045_open_reservations"),)
    operations = (migrations.RunSQL(CREATE, DROP),)
