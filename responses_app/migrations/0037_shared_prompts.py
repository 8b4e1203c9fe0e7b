"""Add columns for prompts that share tokens with an earlier one, and a trigger that keeps them whole when that one is deleted.

Columns with a default of the database or none, so that the server of the version before goes on meanwhile: as long as one of its
processes lives, no prompt is shared.
"""

from __future__ import annotations

from django.db import migrations, models

# A deleted prompt passes its tokens on to those that share them: the base of these is then its own base, if it had one. Bases may be
# deleted by the same statement, so this goes on until no deleted one is a base. Each statement sees what others have committed.
CREATE_TRIGGER = """
CREATE FUNCTION responses_app_pass_on_prompts() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan TO off AS $$
BEGIN
    WHILE EXISTS (SELECT FROM responses_app_storedrequest AS request JOIN gone ON request.base = gone.response_id) LOOP
        UPDATE responses_app_storedrequest AS request SET
            base = gone.base,
            shared_tokens = CASE WHEN gone.base IS NOT NULL THEN LEAST(request.shared_tokens, gone.shared_tokens) END,
            prompt_tokens = substring(
                gone.prompt_tokens FROM 1 FOR 4 * GREATEST(request.shared_tokens - COALESCE(gone.shared_tokens, 0), 0)
            ) || request.prompt_tokens
        FROM gone WHERE request.base = gone.response_id;
    END LOOP;
    RETURN NULL;
END
$$;
CREATE TRIGGER pass_on_prompts AFTER DELETE ON responses_app_storedrequest REFERENCING OLD TABLE AS gone
FOR EACH STATEMENT EXECUTE FUNCTION responses_app_pass_on_prompts();
"""
# The version before reads whole prompts only. A base has a lower key, so that each round completes the prompts of one more level.
DROP_TRIGGER = """
DO $$
BEGIN
    WHILE EXISTS (SELECT FROM responses_app_storedrequest WHERE base IS NOT NULL) LOOP
        UPDATE responses_app_storedrequest AS request SET base = NULL, shared_tokens = NULL,
            prompt_tokens = substring(earlier.prompt_tokens FROM 1 FOR 4 * request.shared_tokens) || request.prompt_tokens
        FROM responses_app_storedrequest AS earlier WHERE earlier.response_id = request.base AND earlier.base IS NULL;
    END LOOP;
END
$$;
DROP TRIGGER pass_on_prompts ON responses_app_storedrequest;
DROP FUNCTION responses_app_pass_on_prompts();
"""
PROMPT_HELP = "Token ids, four bytes each, little-endian; without the first `shared_tokens`, which are those of `base`."
BASE_HELP = "Key of an earlier response whose prompt begins with the same tokens."
SHARED_HELP = "Tokens at the beginning that the prompt shares with that of `base`."


class Migration(migrations.Migration):
    """Adds columns without a rewrite of the tables."""

    dependencies = (("responses_app", "0036_smaller_indexes"),)
    operations = (
        migrations.AlterField("storedrequest", "prompt_tokens", models.BinaryField(help_text=PROMPT_HELP)),
        migrations.AddField("storedrequest", "base", models.BigIntegerField(null=True, help_text=BASE_HELP)),
        migrations.AddField("storedrequest", "shared_tokens", models.IntegerField(null=True, help_text=SHARED_HELP)),
        migrations.AddField(
            "storedrequest", "opening", models.BigIntegerField(null=True, help_text="Hash of the first tokens of a long prompt.")
        ),
        migrations.AddField(
            "worker",
            "reads_shared",
            models.BooleanField(db_default=False, default=False, help_text="Reads prompts that share tokens."),
        ),
        migrations.RunSQL(CREATE_TRIGGER, DROP_TRIGGER),
    )
