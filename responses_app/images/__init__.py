"""Images from clients: address checks, fetching and decoding. Independent of the API."""
