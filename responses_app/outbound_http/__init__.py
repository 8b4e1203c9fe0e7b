"""Outbound HTTP: requests of users, to checked addresses only so that no internal host is reached; and package indexes of uv."""
