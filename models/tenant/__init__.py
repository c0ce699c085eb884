"""Small apps (tenants): their documents and settings."""
