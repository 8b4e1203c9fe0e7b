"""Formats of dates and times for Django's localization (FORMAT_MODULE_PATH)."""
