"""Event log."""
