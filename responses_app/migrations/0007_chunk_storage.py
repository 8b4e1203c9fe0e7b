"""Storage of chunks: texts outside of the rows, so that a search by words reads few pages."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0006_containers'),
    ]

    operations = [
        # A row without its text has less than 128 bytes. Embeddings stay in the row, as a search by embeddings reads all of them.
        migrations.RunSQL(
            "ALTER TABLE responses_app_filechunk SET (toast_tuple_target = 128)",
            "ALTER TABLE responses_app_filechunk RESET (toast_tuple_target)",
        ),
        migrations.RunSQL(
            "ALTER TABLE responses_app_filechunk ALTER COLUMN embedding SET STORAGE MAIN",
            "ALTER TABLE responses_app_filechunk ALTER COLUMN embedding SET STORAGE EXTENDED",
        ),
    ]
