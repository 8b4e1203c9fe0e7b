"""Chaos test of server tools: processes of a whole server are killed during code, uploads and ingestions."""
