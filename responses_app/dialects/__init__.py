"""Chat formats of models: rendering of items to prompt tokens, and parsing of generated tokens to deltas."""
