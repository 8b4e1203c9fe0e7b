"""Chat dialect with the output parsers of vLLM."""
