"""The log of a project as an MCP server, read only: tools that find, read and compare responses, at `/mcp`."""
