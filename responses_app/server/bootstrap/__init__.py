"""Steps before a server serves: installation, database, first API key, ports, event loop."""
