"""Rendering of items, Markdown and untrusted text as HTML."""
