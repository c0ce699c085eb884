"""Store users, groups and events."""
