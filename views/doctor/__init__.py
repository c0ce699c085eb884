"""What doctor finds: each check in its room, and the report of all."""
