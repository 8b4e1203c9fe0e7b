"""Server tools: tools that the server runs."""
