"""Response."""
