"""Parsing of input items, content parts and tools to the stored form."""
