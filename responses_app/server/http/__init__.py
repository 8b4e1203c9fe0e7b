"""Daphne with limits: connections, bodies, slow clients, WebSockets, errors in the API's form."""
