"""Imports and exports as results that every door shows."""
