"""Messages: `POST /v1/messages` in the form of Anthropic's API, as a projection of the log of a response."""
