"""Search back ends: adapters to search services, and a folder of pages."""
