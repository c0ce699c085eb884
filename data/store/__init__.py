"""Snapshots and deliveries in the database."""
