"""The command line: what the web does, from a terminal."""
