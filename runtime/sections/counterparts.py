"""Variables of other schedulers, and what has their meaning here."""

_IN_THE_DATABASE = (
    "jobs are kept in SCHED_DATABASE_URL; bring them by `minutebook job import --file jobs.json`"
)
_OF_ITSELF = "nothing has to be set for that"

# Of the Redis job scheduler whose variables begin with SCHED_ too, and of a data pipeline.
# docs/how-to/move-from-redis-jobs.md lists the former.
COUNTERPARTS = {
    "SCHED_SERVER_ADDR": "set SCHED_WEB_HOST and SCHED_WEB_PORT",
    "SCHED_SERVER_READ_TIMEOUT_S": _OF_ITSELF,
    "SCHED_SERVER_WRITE_TIMEOUT_S": _OF_ITSELF,
    "SCHED_REDIS_ADDR": _IN_THE_DATABASE,
    "SCHED_REDIS_PASSWORD": _IN_THE_DATABASE,
    "SCHED_REDIS_DB": _IN_THE_DATABASE,
    "SCHED_SCHEDULER_POLL_INTERVAL_S": "set SCHED_SCHEDULER_TICK_SECONDS",
    "SCHED_SCHEDULER_MAX_JITTER_S": "write `jitter_s` for each job",
    "SCHED_SCHEDULER_DEFAULT_INTERVAL_S": "write `interval_s` for each job (300 without)",
    "SCHED_SCHEDULER_READY_POP_TIMEOUT_S": "set SCHED_WORK_POP_TIMEOUT_S",
    "SCHED_SCHEDULER_PROMOTE_BATCH_SIZE": _OF_ITSELF,
    "SCHED_LOGGING_FORMAT": "set SCHED_LOG_FORMAT",
    "SCHED_LOGGING_LOG_POLL_STATS": "set SCHED_LOG_POLL_STATS",
    "PIPELINE_SCHEDULE_INTERVAL_HOURS": "write `every` in the action",
    "PIPELINE_TIMEZONE": "write `zone` in the small app",
    "PIPELINE_LOG_LEVEL": "set SCHED_LOG_LEVEL",
    "PIPELINE_FORCE_FULL_REFRESH": "write `force` in the step refresh",
    "PIPELINE_IMPORT_ETA_SECONDS": "runs are estimated by those before",
    "PIPELINE_SOURCE_PROBE_TIMEOUT_SECONDS": "set SCHED_FETCH_TIMEOUT_S",
    "PIPELINE_LOCK_TTL_SECONDS": "set SCHED_WORKER_LEASE_S",
    "PIPELINE_LOCK_STALE_SECONDS": "set SCHED_WORKER_LEASE_S",
    "PIPELINE_LOCK_HEARTBEAT_SECONDS": "set SCHED_WORKER_HEARTBEAT_S",
    "PIPELINE_WATCHDOG_INTERVAL_SECONDS": "set SCHED_SCHEDULER_TICK_SECONDS",
}
