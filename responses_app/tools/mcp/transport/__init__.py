"""Transports of MCP sessions, and the settling of the protocol revision."""
