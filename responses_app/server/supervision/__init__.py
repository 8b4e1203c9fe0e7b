"""Supervision of child processes: start with a readiness notification, restarts, and the end of whole process trees."""
