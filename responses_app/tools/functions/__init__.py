"""Conversion of tools, calls and outputs to functions and back."""
