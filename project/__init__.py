"""Settings, URLs and the ASGI entry: plumbing only."""
