"""Response list."""
