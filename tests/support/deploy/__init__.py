"""Support of the tests in tests/deploy."""
