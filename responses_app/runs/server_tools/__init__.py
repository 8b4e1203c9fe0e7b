"""Server tools of a request: executors, calls in the output of the model, approvals, referenced resources, and secrets."""
