"""What the data product adds to the document of a small app."""
