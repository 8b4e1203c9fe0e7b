"""Pages of a response."""
