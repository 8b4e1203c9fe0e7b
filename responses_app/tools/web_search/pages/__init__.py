"""Pages of the web: fetching, text in a worker process, and windows of numbered lines."""
