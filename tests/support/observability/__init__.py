"""Receivers of what a server reports."""
