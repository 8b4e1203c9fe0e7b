"""Engine worker."""
