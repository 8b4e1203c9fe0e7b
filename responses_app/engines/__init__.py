"""Token ids in, token ids out, and a way to stop: the three engines behind one border."""
