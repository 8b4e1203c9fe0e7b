"""HTTP views of the Responses API."""
