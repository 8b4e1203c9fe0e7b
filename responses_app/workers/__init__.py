"""A pool of child processes with limits on time and memory, for work whose size a client decides."""
