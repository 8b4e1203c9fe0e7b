"""Edits of configuration files that keep all other content, comments included."""
