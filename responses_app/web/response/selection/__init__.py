"""The item that is selected on the pages of a response, with its events and its tokens in a prompt."""
