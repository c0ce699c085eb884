"""Small apps (tenants): documents, data sources, snapshots, mail and the built-in steps."""
