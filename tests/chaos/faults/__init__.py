"""Fault injection: kills, pauses and restarts, and how soon another process takes over."""
