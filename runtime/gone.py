"""What earlier builds of Minutebook had, and what to use instead.

Such a name is refused like any unknown one; the error adds the sentence that stands here.
docs/explanation/scope.md gives the reasons.
"""

from collections.abc import Mapping

# Keys of documents, by their name alone.
KEYS: Mapping[str, str] = {
    "monitor": 'write "ping": [{"url": "https://…"}] in "hooks"',
    "in_doubt": "a task is never sent twice in one attempt; let `retry` send it again",
    "application": "tasks go to one application; give another one a Minutebook of its own",
}

# Commands, as they are typed after `minutebook`.
COMMANDS: Mapping[str, str] = {
    "search": "filter `minutebook operation list` by --reason or --task, `minutebook action list`"
    " by --owner or --task",
    "exec": 'run the program by a step "command", or let it take a job over the HTTP API',
    "completion": "run `minutebook --install-completion`",
    "app grant": "write `minutebook app add NAME --trusted`, or give it --queue and --tasks",
    "operation compare": "run `minutebook operation show ID` for each of the two",
    "app limit": "set SCHED_LIMITS_ACTIONS and SCHED_LIMITS_DISK_MB for all restricted small apps",
    "app calendar": "write the dates into the app's document, as `calendars`",
    **dict.fromkeys(
        ("import icalendar", "import kubernetes", "import systemd"),
        "write an action with its rule and its program",
    ),
    **dict.fromkeys(
        ("import django-celery-beat", "import redbeat"),
        "run `python -m minutebook export -A APP -o beat.json` in the application, and then "
        "`minutebook import beat beat.json`",
    ),
}

# Settings, by their variable.
SETTINGS: Mapping[str, str] = {
    "SCHED_LIMITS_MESSAGES": "set SCHED_LIMITS_MAILS, for 24 hours",
    "SCHED_WEB_SSO_GROUPS": "set SCHED_WEB_SSO_ROLE; give a token to whoever needs another role",
    "SCHED_WEB_SSO_GROUPS_HEADER": "set SCHED_WEB_SSO_ROLE, the role of all",
    "SCHED_CELERY_KEEP_DETAILS": "set SCHED_CELERY_HIDE to .+, which hides all of them",
    "SCHED_FETCH_READER_S": "set SCHED_FETCH_IMPORT_S, for readers and imports",
    **dict.fromkeys(
        ("SCHED_CELERY_APPLICATION", "SCHED_CELERY_BROKERS"),
        "set SCHED_CELERY_BROKER_URL; give each other application a Minutebook of its own",
    ),
    "SCHED_ALERT_SENTRY_DSN": "write webhooks in the actions' hooks",
}
