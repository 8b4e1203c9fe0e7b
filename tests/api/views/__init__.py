"""Tests of the API views."""
