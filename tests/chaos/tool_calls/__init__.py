"""Chaos test of server tools: a web process is killed around the calls of tools that count their runs."""
