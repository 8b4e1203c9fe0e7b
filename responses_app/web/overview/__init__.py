"""Overview: home page of signed-in users."""
