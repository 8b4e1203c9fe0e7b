"""Tests of the wheel and of the files in the folder deploy."""
