"""Storage: event logs, items and conversations in Postgres, and coordination of workers through Postgres."""
