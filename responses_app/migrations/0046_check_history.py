"""Check of the histories with which responses begin."""

from __future__ import annotations

from django.db import migrations

# Locks wait for transactions that change a conversation or delete a response. Each statement of the function reads what was committed
# before that statement. The last item is enough: a conversation only grows behind it, and it is deleted with the previous response.
CREATE = """
CREATE FUNCTION responses_app_check_history(uids text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    opened record;
BEGIN
    FOR opened IN
        SELECT conversation_id AS conversation, previous_uid, history[cardinality(history)] AS last_item FROM responses_app_response
        WHERE uid = ANY(uids) ORDER BY conversation_id, previous_uid
    LOOP
        IF opened.conversation IS NULL THEN
            PERFORM FROM responses_app_response WHERE uid = opened.previous_uid FOR KEY SHARE;
            IF NOT EXISTS (SELECT FROM responses_app_item WHERE id = opened.last_item) THEN
                RAISE EXCEPTION 'the response % is deleted', opened.previous_uid
                    USING ERRCODE = 'foreign_key_violation', CONSTRAINT = 'previous_response_deleted';
            END IF;
            CONTINUE;
        END IF;
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
DROP = "DROP FUNCTION responses_app_check_history(text[])"


class Migration(migrations.Migration):
    """Adds a function."""

    dependencies = (("responses_app", "0045_open_reservations"),)
    operations = (migrations.RunSQL(CREATE, DROP),)
