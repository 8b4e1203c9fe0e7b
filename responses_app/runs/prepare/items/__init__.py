"""Items of a prompt: chosen from a context, added to a conversation, and compacted to a summary."""
