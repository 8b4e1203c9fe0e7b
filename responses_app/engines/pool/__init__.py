"""Pool of engines: several URLs for one model."""
