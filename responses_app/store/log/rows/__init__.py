"""Rows of events: COPY, and the connection of the event loop."""
