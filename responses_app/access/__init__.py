"""API keys, rate limits, the models that a key may use, and the permissions of people."""
