"""Length of a prompt: shortened by dropping the oldest items, which the next turn need not read."""
