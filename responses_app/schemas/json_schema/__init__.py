"""Checks of JSON schemas in requests: size, termination, rules of strict mode."""
