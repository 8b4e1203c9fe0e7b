"""Readers of the formats: each adds the text of a file to a buffer."""
