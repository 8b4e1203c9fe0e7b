"""Demo models: two tiny checkpoints made by this project, so that the server can be tried without downloading anything."""
