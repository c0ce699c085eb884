"""Data sources: URLs, files, queries, readers."""
