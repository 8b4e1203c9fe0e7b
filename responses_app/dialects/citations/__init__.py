"""Citations in generated text: links and markers become annotations."""
