"""vLLM engine in the server's process, and vLLM's own server as a child program."""
