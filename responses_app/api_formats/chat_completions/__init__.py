"""Chat Completions: `POST /v1/chat/completions` as a projection of the log of a response."""
