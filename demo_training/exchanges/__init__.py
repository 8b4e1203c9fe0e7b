"""Generators of exchanges: a few turns about one subject each, from which dialogues are mixed."""
