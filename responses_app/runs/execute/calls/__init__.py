"""Calls of tools that the server runs: found in the output of the model, and executed beside the generation."""
