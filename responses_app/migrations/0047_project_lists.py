"""Allowed models and tools of a project: columns with a constant default."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

TOOLS_HELP = (
    "Tools that this server runs: code_interpreter, file_search, web_search, mcp:LABEL for a server of the operator, "
    "mcp for servers that a request names by URL, or none. Leave blank to allow all."
)


def _names(help_text: str) -> ArrayField:  # type: ignore[type-arg]
    return ArrayField(models.CharField(max_length=200), blank=True, default=list, db_default=[], help_text=help_text)


class Migration(migrations.Migration):
    """Adds the columns."""

    dependencies = (("responses_app", "0046_check_history"),)
    operations = (
        migrations.AddField("project", "allowed_models", _names("Leave blank to allow all models.")),
        migrations.AddField("project", "allowed_tools", _names(TOOLS_HELP)),
    )
