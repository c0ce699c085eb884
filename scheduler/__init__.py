"""Decide what is due, record it and send it."""
