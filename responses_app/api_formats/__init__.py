"""API formats besides Responses: each translates a request to a `CreateRequest`, and the log to the chunks and bodies of the format."""
