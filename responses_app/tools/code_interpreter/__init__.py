"""Code interpreter: Python code of the model, run in a container of the sandbox."""
