"""The front door for machines: HTTP in, the Responses API out."""
