"""Embedded Postgres: programs, account, cluster, roles and watchdog."""
