"""This installation: data folder, SECRET_KEY and the encryption keys derived from it, database URL."""
