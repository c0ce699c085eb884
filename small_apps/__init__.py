"""A small app's data: where it comes from, how it is kept, what it says."""
