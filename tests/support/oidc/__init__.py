"""OpenID Connect provider for tests: django-oauth-toolkit as a process."""
