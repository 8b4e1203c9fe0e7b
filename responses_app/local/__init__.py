"""This installation: data folder, secrets, database URL, limits of the transport."""
