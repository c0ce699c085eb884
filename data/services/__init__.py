"""The data product as results that every door shows."""
