"""Migrations of the data product's tables, in an order of their own."""
