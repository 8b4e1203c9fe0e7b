"""Event protocol of the Responses API, pure and free of I/O: deltas in, events out, snapshots from events."""
