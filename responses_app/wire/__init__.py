"""Form of requests, responses and events on the wire: server-sent events, profiles, errors."""
