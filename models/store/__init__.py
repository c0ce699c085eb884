"""Queries on the tables; each takes a connection and leaves the commit to the caller."""
