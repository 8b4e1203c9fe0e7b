"""Constraints on generated text: structural tags, and grammars of custom tools."""
