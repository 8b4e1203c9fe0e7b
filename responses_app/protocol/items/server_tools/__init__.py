"""Families of calls that the server runs."""
