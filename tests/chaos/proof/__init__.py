"""Checks from outside that nothing was lost and that nothing is left behind."""
