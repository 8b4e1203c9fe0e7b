"""Model families: the output format of a model, detected from the files of the checkpoint."""
