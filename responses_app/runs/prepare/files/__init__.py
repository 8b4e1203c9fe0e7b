"""Files of a context: texts of documents, and bytes of uploaded images."""
