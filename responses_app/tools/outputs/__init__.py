"""Outputs of server tools as the model reads them: truncated texts, and pictures."""
