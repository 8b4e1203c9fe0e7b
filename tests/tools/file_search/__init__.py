"""Tests of the file search."""
