"""Chat page."""
