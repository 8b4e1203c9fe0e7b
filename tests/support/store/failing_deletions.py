"""Responses that Postgres does not delete, like those with a damaged row."""

from __future__ import annotations

from django.db import connection

from responses_app.store.content.batches import warn_once

SQL = """
CREATE FUNCTION fail_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF OLD.uid LIKE '%damaged%' THEN RAISE EXCEPTION USING ERRCODE = 'data_corrupted'; END IF; RETURN OLD; END $$;
CREATE TRIGGER fail_deletion BEFORE DELETE ON responses_app_response FOR EACH ROW EXECUTE FUNCTION fail_deletion();
"""


def fail_deletions() -> None:
    """Let the deletion of a response with `damaged` in its id fail until the end of the transaction."""
    warn_once.cache_clear()
    with connection.cursor() as cursor:
        cursor.execute(SQL)
