"""Observation of a serving process: metrics of requests, responses, commits and engines. Nothing here changes what a client gets."""
