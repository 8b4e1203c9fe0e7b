"""Calls written as elements, with the arguments as elements too."""
