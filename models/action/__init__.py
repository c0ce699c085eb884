"""Scheduled actions: their documents, plans, rules and health."""
