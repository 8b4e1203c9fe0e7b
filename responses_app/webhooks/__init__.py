"""Webhooks: signed POST requests to the endpoints of a project when its background responses end."""
