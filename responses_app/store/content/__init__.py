"""Queries of items, conversations and responses."""
