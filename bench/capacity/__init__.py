"""Capacity: the load of one Postgres, and a simulation of a day."""
