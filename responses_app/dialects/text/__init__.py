"""Text processing shared by all dialects: tokenizers, token budgets, buffers."""
