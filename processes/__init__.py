"""The start and stop of each of Minutebook's processes."""
