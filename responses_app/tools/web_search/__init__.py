"""Web search that the server runs: search back ends, reading of pages, and the executor."""
