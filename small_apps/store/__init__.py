"""Queries of small apps: documents, people, snapshots, deliveries."""
