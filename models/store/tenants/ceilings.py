"""The ceilings of a restricted small app; a trusted one has none."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum

import sqlalchemy as sa

from models.errors import Refused
from models.sql import database_now
from models.store import tenants
from models.store.conditions import of_app
from models.tables import actions, audit, notices, users
from runtime.plug_ins import added, named
from runtime.sections.limits import LimitSettings

MEBIBYTE = 2**20
DAY = timedelta(days=1)
# Verbs of the audit trail that may have sent a mail.
TESTS = ("hook.test", *named("mail_tests"))


class Ceiling(StrEnum):
    """What has a ceiling, by the name of its setting."""

    ACTIONS = "actions"
    USERS = "users"
    MAILS = "mails"


# What is counted, and what an app's editor can do.
_WORDS: Mapping[Ceiling, tuple[str, str]] = {
    Ceiling.ACTIONS: ("actions", "delete some"),
    Ceiling.USERS: ("users", "remove some"),
    Ceiling.MAILS: ("mails in 24 hours", "send the rest later"),
}


def most_of(connection: sa.Connection, small_app_id: int, what: str, limits: LimitSettings) -> int:
    """Return a small app's ceiling by the name of its setting; 0 for none. Raises NotFound."""
    is_trusted = tenants.trust_of(connection, small_app_id).is_trusted
    most: int = getattr(limits, what)
    return 0 if is_trusted else most


def check(
    connection: sa.Connection,
    small_app_id: int,
    what: Ceiling,
    limits: LimitSettings,
    more: int = 0,
) -> int:
    """Raise Refused if a small app would exceed a ceiling with `more` than are stored.

    Returns how many it may have beyond what is stored: a million of what has no ceiling.
    """
    most = most_of(connection, small_app_id, what, limits)
    if not most:
        return 1_000_000
    used = _USED[what](connection, small_app_id)
    if used + more > most:
        raise Refused(_refusal(connection, small_app_id, what, used + more, most))
    return most - used


def _refusal(
    connection: sa.Connection, small_app_id: int, what: Ceiling, total: int, most: int
) -> str:
    name = tenants.by_id(connection, small_app_id).name
    return exceeded(name, (what, *_WORDS[what]), total, most)


def exceeded(app: str, words: tuple[str, str, str], total: int, most: int) -> str:
    """Return the error of a small app that would exceed a ceiling.

    `words` are the name of its setting, what it counts, and what an editor can do.
    """
    what, counted, remedy = words
    return (
        f"small app {app!r} is restricted to {most:,} {counted} (SCHED_LIMITS_{what.upper()}), and "
        f"this makes {total:,}; {remedy}, or let an admin of the installation raise the ceiling"
    )


def _actions(connection: sa.Connection, small_app_id: int) -> int:
    return _count(connection, sa.select(actions.c.uid).where(of_app(small_app_id)))


def _users(connection: sa.Connection, small_app_id: int) -> int:
    return _count(connection, sa.select(users.c.id).where(users.c.small_app_id == small_app_id))


def _mails(connection: sa.Connection, small_app_id: int) -> int:
    """Count the mails of the last 24 hours: of steps, of hooks, and tests of both."""
    of_steps = [mails(small_app_id) for mails in added("mails")]
    of_hooks = (
        sa.select(notices.c.id)
        .where(notices.c.small_app_id == small_app_id)
        .where(notices.c.finished_at > database_now(-DAY), notices.c.state == "done")
        .where(notices.c.target["kind"].as_string() == "mail")
    )
    tests = (
        sa.select(audit.c.id)
        .where(audit.c.small_app_id == small_app_id)
        .where(audit.c.at > database_now(-DAY), audit.c.verb.in_(TESTS))
    )
    return sum(_count(connection, query) for query in (*of_steps, of_hooks, tests))


def _count(connection: sa.Connection, query: sa.Select[tuple[object]]) -> int:
    count = sa.select(sa.func.count()).select_from(query.subquery())
    return connection.execute(count).scalar_one()


_USED: Mapping[Ceiling, Callable[[sa.Connection, int], int]] = {
    Ceiling.ACTIONS: _actions,
    Ceiling.USERS: _users,
    Ceiling.MAILS: _mails,
}
