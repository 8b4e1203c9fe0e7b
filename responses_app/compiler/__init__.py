"""Compilation of schemas, regular expressions and grammars in child processes, with limits on time and memory."""
