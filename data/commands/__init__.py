"""Commands for the data product."""
