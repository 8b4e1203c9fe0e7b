"""Configuration of clients, such as Codex and opencode, for a model of this server."""
