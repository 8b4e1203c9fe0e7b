"""Checks of an installation by `manage.py doctor`: a sentence with the remedy for each problem."""
