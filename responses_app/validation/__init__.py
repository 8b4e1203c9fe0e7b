"""Validation of data from requests: strict schemas, and errors that name the JSON path."""
