"""Tasks of other Celery applications: how an agent follows what was handed over."""
