"""Views of the API, a module for each resource."""
