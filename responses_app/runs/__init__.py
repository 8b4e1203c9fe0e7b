"""The only room where the others meet: a run, the hub that owns it, and the models that are served."""
