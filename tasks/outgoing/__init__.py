"""Requests that leave for an address that a user wrote: checked, and bounded in time."""
