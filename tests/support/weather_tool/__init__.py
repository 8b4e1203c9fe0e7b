"""Imaginary server tool `weather`, with the parts that docs/contributing/add-a-server-tool.md names."""
