"""Servers, load and logs that several benchmarks use."""
