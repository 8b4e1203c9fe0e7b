"""Pictures that come from outside: their addresses guarded, their bytes fetched and decoded. Knows nothing of the API."""
