"""The front door for machines that keep it open: WebSockets."""
