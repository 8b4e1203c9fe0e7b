"""Server tools of a request: the executors, checks of approvals and of referenced resources, and secrets."""
