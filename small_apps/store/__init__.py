"""The tables of small apps: documents, people, snapshots, deliveries."""
