"""Webhooks: signed POST requests to the endpoints of a project at the end of background responses."""
