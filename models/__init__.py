"""Documents, tables, and every query on them."""
