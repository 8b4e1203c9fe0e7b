"""Event list, raw stream and downloads of a response."""
