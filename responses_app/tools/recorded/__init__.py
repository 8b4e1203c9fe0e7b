"""Recorded results of server tools, which stand in for running the tools in a rerun."""
