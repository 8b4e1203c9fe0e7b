"""Counters of limits, usage of tokens, and prices."""
