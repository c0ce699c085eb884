"""Run, restart, cancel and backfill operations on request."""
