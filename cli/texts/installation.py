"""What makes an installation, in words."""

from collections.abc import Iterator

from services.installation import ACTION, Migrated, Started, StoppedUp


def _migrated(done: Migrated) -> Iterator[str]:
    if done.before == done.after:
        yield f"the schema is up to date: {done.after}"
    else:
        yield f"the schema went from {done.before or 'empty'} to {done.after}"
    for name in done.maintained:
        yield f"small app {name} has an action maintenance now, daily at 04:00 in its zone"


def _started(made: Started) -> Iterator[str]:
    for one in made.root:
        yield f"wrote {one.path}" if one.is_new else f"left {one.path} as it was"
    yield f"next: minutebook action check {ACTION}; minutebook action apply {ACTION}; minutebook up"


def _stopped(one: StoppedUp) -> Iterator[str]:
    found = f"stopped minutebook up (pid {one.pid})" if one.pid else "no minutebook up is running"
    yield f"{found} on {one.home}"


FORMS = {Migrated: _migrated, Started: _started, StoppedUp: _stopped}
