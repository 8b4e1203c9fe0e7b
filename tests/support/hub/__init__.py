"""Model hub of the tests: a server in the layout of the hub, with faults."""
