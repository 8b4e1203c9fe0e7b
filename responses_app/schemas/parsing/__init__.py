"""Parsing of input items, content parts and tools to their stored form."""
