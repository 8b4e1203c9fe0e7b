"""Accounts of people: sign-in and erasure."""
