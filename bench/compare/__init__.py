"""This server beside vLLM's own endpoint: servers, measurement, tables and plots."""
