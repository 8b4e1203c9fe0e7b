"""Execution of a run: rounds of generation, publishing of events, endings."""
