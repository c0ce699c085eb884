"""What the data is: documents, tables, and every query on them."""
