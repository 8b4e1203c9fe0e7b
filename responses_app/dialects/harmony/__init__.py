"""Harmony dialect of gpt-oss models."""
