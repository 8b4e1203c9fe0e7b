"""HTTP client of a vLLM server."""
