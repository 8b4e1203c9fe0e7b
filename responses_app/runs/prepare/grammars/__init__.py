"""Grammars and schemas of a request, checked and converted by the compiler before the run."""
