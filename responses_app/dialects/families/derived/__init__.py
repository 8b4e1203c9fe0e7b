"""Output formats derived from the turns that a template writes."""
