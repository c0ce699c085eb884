"""The same as the web, from a terminal."""
