"""Mixed load for hours: sessions of clients, kills of a web process, and the resources of the server meanwhile."""
