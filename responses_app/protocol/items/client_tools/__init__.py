"""Families of calls that the client answers."""
