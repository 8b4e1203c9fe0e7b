"""File search: search in vector stores, embeddings, and the executor of the tool."""
