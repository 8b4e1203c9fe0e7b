"""Client matrix: real clients on served models, task by task."""
