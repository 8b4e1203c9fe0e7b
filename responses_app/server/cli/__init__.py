"""Command line of `bin/serve`: arguments, model specifications, progress and the final banner."""
