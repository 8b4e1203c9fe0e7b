"""Runs: preparation, execution and recovery of responses, and the manager of runs."""
