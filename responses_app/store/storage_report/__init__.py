"""Storage report: sizes of tables and projects, the backlog of the archive, and the growth of the database."""
