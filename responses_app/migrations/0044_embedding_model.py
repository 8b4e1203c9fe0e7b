"""Model of the embeddings of a file, whose vectors cannot be compared with those of another: a column with a constant default."""

from __future__ import annotations

from django.db import migrations, models

HELP = "Model of the embeddings of the chunks. Empty without embeddings, or if an earlier version added the file."


class Migration(migrations.Migration):
    """Adds the column."""

    dependencies = (("responses_app", "0043_worker_shared_settings"),)
    operations = (
        migrations.AddField(
            "vectorstorefile", "embedding_model", models.TextField(blank=True, default="", db_default="", help_text=HELP)
        ),
    )
