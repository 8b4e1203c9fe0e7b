"""Role of Django's connections: owns the database and is no superuser, so SQL reaches no file and no program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from responses_app.installation.database_url import DATABASE, ROLE, SUPERUSER

CONNECT_LIMIT_S = 30

CREATE = f"""
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE}; END IF;
END $$
"""
# Details of an error contain values of the rejected row.
LIMIT = f"ALTER ROLE {ROLE} SET log_error_verbosity = 'terse'"
OWN = f"ALTER DATABASE {DATABASE} OWNER TO {ROLE}"
# In clusters of older versions the superuser owns the tables. The owner of objects of extensions stays the same.
TAKE = f"""
DO $$ DECLARE thing text; BEGIN
    FOR thing IN
        SELECT format('%s %s', CASE c.relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                      ELSE 'TABLE' END, c.oid::regclass)
        FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relowner = '{SUPERUSER}'::regrole
          AND c.relkind IN ('r', 'p', 'v', 'm', 'S')
          AND NOT EXISTS (
              SELECT FROM pg_depend d
              WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype IN ('a', 'i', 'e')
          )
        UNION ALL
        SELECT format('ROUTINE %s', p.oid::regprocedure)
        FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace AND p.proowner = '{SUPERUSER}'::regrole
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('ALTER %s OWNER TO {ROLE}', thing);
    END LOOP;
END $$
"""  # noqa: S608 - names of this module alone
# The role of Django may not add extensions. pgvector calculates the distances of embeddings in searches.
EXTENSION = """
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN CREATE EXTENSION IF NOT EXISTS vector; END IF;
END $$
"""
# New databases are copies of this database.
TEMPLATE = "template1"


def make_role(sockets: Path, port: int, *, may_create_databases: bool) -> None:
    """Make the role if missing, with minimal rights, give all tables to the role, and add the extension `vector`.

    Raises psycopg.Error.
    """
    import psycopg

    rights = f"ALTER ROLE {ROLE} LOGIN NOSUPERUSER NOCREATEROLE NOREPLICATION NOBYPASSRLS"
    rights += " CREATEDB" if may_create_databases else " NOCREATEDB"
    statements: dict[str, Sequence[str]] = {DATABASE: (CREATE, rights, LIMIT, OWN, TAKE, EXTENSION)}
    if may_create_databases:
        statements[TEMPLATE] = (EXTENSION,)
    for database, texts in statements.items():
        with psycopg.connect(
            host=str(sockets), port=port, user=SUPERUSER, dbname=database, connect_timeout=CONNECT_LIMIT_S, autocommit=True
        ) as connection:
            for text in texts:
                connection.execute(text.encode())
