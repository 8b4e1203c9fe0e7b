"""The front door for people."""
