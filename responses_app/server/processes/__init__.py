"""Server processes: supervisor, web process, single-process server, and the shutdown."""
