"""Written forms of tool calls: each reads calls and builds the grammar of calls."""
