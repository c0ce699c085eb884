"""What Minutebook's Celery workers run: operations, backfills and notices."""
