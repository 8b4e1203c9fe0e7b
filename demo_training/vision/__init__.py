"""Drawings, and the training of the image encoder of demo-chat."""
