"""Tests of vector stores."""
