"""Drop the second index that Django makes for each text column with an index, for `LIKE` in other collations than C.

Ids are looked up by equality, for which the first index is enough; each second one costs about 70 bytes a row, and WAL. The names of
the fields stay as they are, so no state changes. Concurrently: the server of the version before goes on meanwhile.
"""

from __future__ import annotations

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

LIST_SQL = r"""SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()
AND tablename LIKE 'responses\_app\_%' AND indexname LIKE '%\_like' ORDER BY 1"""


def drop_like_indexes(_apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Drop the indexes one after another. A repeated call continues after a failure."""
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute(LIST_SQL)
        for (name,) in cursor.fetchall():
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {connection.ops.quote_name(name)}")


class Migration(migrations.Migration):
    """Not atomic, as an index cannot be dropped concurrently in a transaction."""

    atomic = False
    dependencies = (("responses_app", "0031_storage_samples"),)
    operations = (migrations.RunPython(drop_like_indexes, migrations.RunPython.noop),)
