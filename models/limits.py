"""Messages about a limit that a small app has reached: which one, its setting, what to do."""

PREFIX = "SCHED_LIMITS_"
# A limit is close from this share on.
CLOSE = 0.8


def too_many(what: str, most: int, remedy: str) -> str:
    """Return the error of a change that gives a small app more than `most` domains or users."""
    return (
        f"a small app may have at most {most:,} {what} ({PREFIX}{what.upper()}), and this would "
        f"exceed it; {remedy}, or raise the limit"
    )


def too_many_actions(app: str, count: int, most: int) -> str:
    """Return the error of a change that gives a small app more than `most` actions."""
    return (
        f"small app {app!r} would have {count:,} actions, and may have {most:,} "
        f"({PREFIX}ACTIONS); delete some, or let an administrator run "
        f"`minutebook app limit {app} --actions {count}`"
    )


def disk_is_full(app: str, used_mb: int, most_mb: int) -> str:
    """Return why a refresh does not go on."""
    return (
        f"the snapshots and downloads of small app {app!r} take {used_mb:,} MiB, and may take "
        f"{most_mb:,} ({PREFIX}DISK_MB); refresh less, let `maintenance` remove old snapshots, or "
        f"let an administrator run `minutebook app limit {app} --disk-mb {2 * used_mb}`"
    )


def too_many_wait(most: int, remedy: str) -> str:
    """Return why no further operation of a small app is recorded to run."""
    return f"{most:,} operations of its small app are already waiting ({PREFIX}WAITING); {remedy}"


def imported_enough(minutes: int) -> str:
    """Return why a refresh does not go on."""
    return (
        f"the refreshes of this small app have used today's {minutes:,} minutes, in UTC "
        f"({PREFIX}IMPORT_MINUTES); refresh less often or fewer domains, or raise the limit"
    )


def sent_enough(messages: int) -> str:
    """Return why a mail waits."""
    return f"waits: its small app sends at most {messages:,} messages a minute ({PREFIX}MESSAGES)"


def tested_enough(messages: int) -> str:
    """Return why a test mail is not sent."""
    return (
        f"the small app has sent its {messages:,} messages of this minute ({PREFIX}MESSAGES); "
        "try again in the next one"
    )


def is_close(used: float, most: int) -> bool:
    """Return whether a limit is close or reached; 0 is none."""
    return most > 0 and used >= CLOSE * most
