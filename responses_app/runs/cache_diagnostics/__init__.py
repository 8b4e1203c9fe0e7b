"""Prefix cache diagnostics: where a prompt stops sharing tokens with the prompt of an earlier response, why, and the cost."""
