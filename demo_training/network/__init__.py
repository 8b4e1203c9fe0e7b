"""The networks, their first weights, their vocabularies and their optimizer."""
