"""Network access for requests of users: checked addresses only."""
