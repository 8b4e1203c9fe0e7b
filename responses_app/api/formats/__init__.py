"""Views of the API formats besides Responses."""
