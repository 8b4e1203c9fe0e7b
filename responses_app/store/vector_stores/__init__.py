"""Vector stores: chunks of files, ingestion and search in Postgres."""
