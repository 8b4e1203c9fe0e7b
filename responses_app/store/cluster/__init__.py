"""Coordination of workers: leases and notifications."""
