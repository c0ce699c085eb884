"""What is broken in an installation, and for how long: who is told of it, and when. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from models.store.notices.findings import Found, id_of
from services.verdict.finding import Finding, Kind, Severity

# Ticks end these rows by themselves.
OF_TICKS = frozenset({Kind.BROKER_DOWN, Kind.APPLICATION_BROKER_DOWN})
# What the last tick saw of these says nothing once no daemon ticks.
BY_TICKS = frozenset({Kind.OLDER_RELEASE, Kind.QUEUE_UNREAD})


def broken(findings: Sequence[Finding], machine: str) -> dict[UUID, tuple[Found, datetime | None]]:
    """Return what is broken as rows, by their ids, and since when.

    A row stays the same when its text counts further. Only processes of one machine see its disk.
    """
    found = {}
    for one in findings:
        about = "" if one.kind in OF_TICKS else one.remedy
        about = f"{about} | {machine}" if one.kind is Kind.DISK else about
        row = Found(one.kind, str(one.uid or about), one.text, one.remedy)
        if one.severity is Severity.BROKEN:
            found[row.id] = (row, one.since)
    return found


def is_over(row: Any, found: Mapping[UUID, tuple[Found, Any]], machine: str) -> bool:
    """Return whether a row is over that this look did not find; it cannot know that of some."""
    is_elsewhere = row.kind == Kind.DISK and row.id != id_of(row.kind, f"{row.remedy} | {machine}")
    has_daemon = all(one.kind != Kind.NO_DAEMON for one, _ in found.values())
    is_unknown = row.kind in BY_TICKS and not has_daemon
    return not (row.id in found or row.kind in OF_TICKS or is_elsewhere or is_unknown)


def is_due(row: Any, found: Mapping[UUID, Any], now: datetime, after: timedelta) -> bool:
    """Return whether a row is to be told now: it is broken for longer than `after`.

    `found` are the causes: what follows from another one is told by that one.
    """
    return row.id in found and row.told_at is None and now - row.began_at > after
