"""Delivery of pages: Content-Security-Policy and compression."""
