"""Outbound HTTP for requests of users, to checked addresses only: no internal host is reached."""
