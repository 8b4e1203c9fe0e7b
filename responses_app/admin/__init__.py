"""Django admin."""
