"""Limits of keys and projects, the counters of these, and usage."""
