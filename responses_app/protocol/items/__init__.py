"""Item families: a module per family, the registry of all families, and shared base classes."""
