"""Timelines of a response: generation, tools and their rates."""
