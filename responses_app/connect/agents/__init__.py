"""Clients that can be connected: the files of each, in the form that the client documents."""
