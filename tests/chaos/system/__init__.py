"""The system under test: Postgres, an engine, and web processes, on a single database."""
