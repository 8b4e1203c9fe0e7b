"""Chaos tests: a whole system under load whose parts are killed at random moments, and a proof from outside that nothing was lost."""
