"""A migration in words."""

from collections.abc import Iterator

from views.installation import Migrated


def _migrated(done: Migrated) -> Iterator[str]:
    if done.before == done.after:
        yield f"the schema is up to date: {done.after}"
    else:
        yield f"the schema went from {done.before or 'empty'} to {done.after}"
    for name in done.maintained:
        yield f"small app {name} has an action maintenance now, daily at 04:00 in its zone"


FORMS = {Migrated: _migrated}
