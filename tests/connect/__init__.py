"""Tests of the configuration of clients."""
