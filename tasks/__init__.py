"""What Minutehand's Celery workers run: operations, backfills and notices."""
