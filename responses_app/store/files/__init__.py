"""Uploaded files: bytes in Django's storage `files`, rows in the database, and changes that a crash may interrupt."""
