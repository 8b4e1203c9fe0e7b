"""Calls of server tools: executed beside the generation, with a result or a reason why there is none."""
