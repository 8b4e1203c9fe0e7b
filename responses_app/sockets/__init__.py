"""WebSocket transport of the Responses API."""
