"""Measurement of tables, checks and statements for the rows of the log."""
