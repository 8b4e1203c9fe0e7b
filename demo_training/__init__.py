"""Training of the demo models: invented dialogues, small networks, evaluation, export of the weights."""
