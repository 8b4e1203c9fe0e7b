"""Pages of uploaded files."""
