"""Capacity: what one Postgres carries, and a simulation of a day."""
