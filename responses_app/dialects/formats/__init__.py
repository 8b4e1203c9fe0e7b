"""Output formats of chat models: parsers and structural tags, declared per family."""
