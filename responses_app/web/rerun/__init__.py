"""Page that edits the request of a stored response, runs the request again, and compares the runs."""
