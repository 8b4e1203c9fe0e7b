"""Engine worker on the same machine, over a Unix socket: the client in a web process, and the host in the worker."""
