"""Item families: one module per family, the registry of all families, and the base classes that families share."""
