from django.db import migrations

# Refuses the end of responses without their leases, inside of the statement: the commit needs no second round trip.
CREATE = """
CREATE FUNCTION responses_app_check_leases(expected bigint, released bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF released <> expected THEN
        RAISE EXCEPTION '% of % leases are held by another worker', expected - released, expected
            USING ERRCODE = 'check_violation', CONSTRAINT = 'lease_held';
    END IF;
    RETURN TRUE;
END
$$
"""
DROP = "DROP FUNCTION responses_app_check_leases(bigint, bigint)"


class Migration(migrations.Migration):

    dependencies = [
        ('responses_app', '0010_contiguous_lookup'),
    ]

    operations = [migrations.RunSQL(CREATE, DROP)]
