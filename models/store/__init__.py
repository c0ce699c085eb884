"""The verbs on the tables, one file per noun; each takes a connection and leaves the commit."""
