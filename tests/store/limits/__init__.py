"""Tests of the counters of limits and of usage."""
