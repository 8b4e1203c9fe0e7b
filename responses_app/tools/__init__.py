"""Tools that the server runs."""
