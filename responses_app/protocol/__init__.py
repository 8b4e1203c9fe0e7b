"""What may be said, and in which order: the event grammar of the Responses API, pure and free of I/O."""
