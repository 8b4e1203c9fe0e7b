"""Backups: a folder with a dump of the database, the stored files, the secret files and a manifest of checksums."""
