"""Benchmarks: how fast, beside rivals; never part of the test run."""
