"""Event logs: writing, reading, archival and retention."""
