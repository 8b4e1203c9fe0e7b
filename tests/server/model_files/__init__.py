"""Tests of the checks and downloads of models."""
