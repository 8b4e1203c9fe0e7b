"""Runs: preparation, execution and recovery of responses, and the manager that owns them."""
