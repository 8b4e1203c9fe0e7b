"""Receivers of the reports of a server."""
