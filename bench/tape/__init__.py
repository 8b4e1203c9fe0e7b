"""Events per second of this server, with a recording as the engine."""
