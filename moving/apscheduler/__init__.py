"""Jobs of APScheduler 3: read as data, compared with its own triggers, and written."""
