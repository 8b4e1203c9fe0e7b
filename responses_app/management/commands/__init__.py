"""Our own commands, beside Django's."""
