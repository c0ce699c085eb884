"""What people ask for: runs, restarts, cancelling, backfills."""
