"""What other schedulers call our keys, for the hints at unknown keys."""

from collections.abc import Collection, Mapping

# Each word with the keys that it may stand for; the first that is known at its place is meant.
_MEANT: Mapping[str, tuple[str, ...]] = {
    "addresses": ("users",),
    "arguments": ("args",),
    "autoretry": ("retry",),
    "backofflimit": ("retry",),
    "catchup": ("catch_up",),
    "clocked": ("due_date",),
    "coalesce": ("catch_up",),
    "comment": ("description",),
    "concurrency": ("overlap",),
    "concurrencypolicy": ("overlap",),
    "cron": ("cron_rule", "when"),
    "crontab": ("cron_rule", "when"),
    "date": ("due_date",),
    "datetime": ("due_date",),
    "deadline": ("look_back",),
    "email": ("mail", "users"),
    "emails": ("users",),
    "enabled": ("active",),
    "end_date": ("ends_at",),
    "event": ("on",),
    "expires": ("look_back",),
    "expression": ("cron_rule",),
    "func": ("task",),
    "function": ("task",),
    "http": ("webhook",),
    "interval": ("every", "when"),
    "is_active": ("active",),
    "label": ("name",),
    "max_instances": ("overlap",),
    "max_retries": ("max_attempts", "retry"),
    "misfire_grace_time": ("look_back",),
    "name": ("task",),
    "parameters": ("kwargs",),
    "params": ("kwargs",),
    "paused": ("active",),
    "period": ("every",),
    "retries": ("max_attempts", "retry"),
    "rule": ("cron_rule",),
    "run_at": ("due_date",),
    "schedule": ("cron_rule", "when"),
    "seconds": ("every",),
    "start_date": ("starts_at",),
    "startingdeadlineseconds": ("look_back",),
    "steps": ("operations",),
    "suspend": ("active",),
    "timeout": ("time_limit",),
    "time_zone": ("timezone",),
    "title": ("name",),
    "to": ("users", "mail"),
    "trigger": ("when",),
    "tz": ("timezone",),
    "url": ("webhook",),
    "user": ("users",),
    "zone": ("timezone",),
}
# Keys that an action has one level below, by the key that holds them.
_BELOW: Mapping[str, tuple[str, ...]] = {
    "when": ("cron_rule", "due_date", "every", "timezone", "tz"),
    "policy": ("retry", "overlap", "time_limit", "catch_up", "look_back", "queue", "starts_at"),
    "recipients": ("users", "groups"),
    "hooks": ("on_success", "on_failure"),
    "operations": ("celery_task", "refresh", "publish", "send_email", "send_execsum", "job"),
}


def meant_by(word: object, known: Collection[str]) -> str | None:
    """Return the known key that a word of another scheduler stands for."""
    folded = str(word)[:40].casefold()
    return next((key for key in _MEANT.get(folded, ()) if key in known), None)


def place_of(word: object, known: Collection[str]) -> str | None:
    """Return the known key below which a key belongs that stands one level too high."""
    return next((key for key, held in _BELOW.items() if word in held and key in known), None)
