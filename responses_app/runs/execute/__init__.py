"""Execution of one run: rounds of generation, publishing of events, endings."""
