"""Worker processes with limits on time and memory, for work of a size chosen by clients."""
