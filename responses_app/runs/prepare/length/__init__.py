"""Length of a prompt: counted with its images, and shortened by dropping the oldest items."""
