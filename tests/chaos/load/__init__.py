"""The load of the chaos test: cases, and HTTP clients that follow each response to the end."""
