"""Django settings, root URL configuration and ASGI application."""
