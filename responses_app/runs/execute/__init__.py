"""Execute."""
