"""Files of models: checks before a start, and downloads from the model hub into the shared cache."""
