"""Scheduled actions: their documents, plans, rules and health."""

# The key of a rule that runs once, at an instant.
DUE_DATE = "due_date"
