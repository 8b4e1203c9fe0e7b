"""Pages of the API keys."""
