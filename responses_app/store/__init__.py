"""Append, then tell: the log of events, and what is read back from it."""
