"""How one talks to a model (items to token ids), and how one listens (token ids to pieces)."""
