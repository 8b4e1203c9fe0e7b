"""Pool of engines: several URLs for a model."""
