"""What doctor finds: a module for each group of checks, and the report of all."""
