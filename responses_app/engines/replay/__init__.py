"""Replay engine and tapes."""
