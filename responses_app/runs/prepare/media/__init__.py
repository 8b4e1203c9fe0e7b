"""Images and files of a context: bytes and texts, from the store or from the addresses that a client sends."""
