"""Calls of tools that the server runs: executed beside the generation, with a result or a reason why there is none."""
