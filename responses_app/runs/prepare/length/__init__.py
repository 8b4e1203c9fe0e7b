"""Length of a prompt: counted with the images, and shortened by dropping the oldest items."""
