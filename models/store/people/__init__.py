"""Users, groups and events."""
