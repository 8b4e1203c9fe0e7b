"""Harmony."""
