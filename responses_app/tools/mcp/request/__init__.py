"""MCP servers in requests: schemas of declarations and of items, and the parsing of declarations."""
