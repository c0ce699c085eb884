"""The occurrences of a document, computed independently and simply, one by one.

Cron rules of minutes and hours in UTC, due dates, intervals; anything else is a ValueError.
"""

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

MINUTE = timedelta(minutes=1)


def is_true(value: object) -> bool:
    """Return whether a stored flag, or a step's entry, is not false."""
    return value not in (False, "false", None)


def occurrences(
    document: dict[str, Any], uid: str, since: datetime, until: datetime
) -> set[datetime]:
    """Return all occurrences of an action's document in (since, until]."""
    if not is_true(document.get("active", True)):
        return set()
    when = document["when"]
    rules = when if isinstance(when, list) else [when]
    found = {at for rule in rules for at in _of_rule(rule, uid, since, until)}
    policy = document.get("policy") or {}
    begins, ends = policy.get("starts_at"), policy.get("ends_at")
    return {
        at
        for at in found
        if not (begins and at < _instant(begins)) and not (ends and at >= _instant(ends))
    }


def _of_rule(
    rule: dict[str, Any], uid: str, since: datetime, until: datetime
) -> Iterator[datetime]:
    if "cron_rule" in rule:
        yield from _of_cron(rule, since, until)
    elif "due_date" in rule:
        due = _instant(rule["due_date"])
        if since < due <= until:
            yield due
    elif "every" in rule:
        yield from _of_interval(rule, uid, since, until)
    else:
        raise ValueError(f"the checker does not know the rule {rule}")


def _of_cron(rule: dict[str, Any], since: datetime, until: datetime) -> Iterator[datetime]:
    minutes, hours, *days = rule["cron_rule"].split()
    if days != ["*", "*", "*"] or rule["timezone"] not in {"UTC", "Etc/UTC"}:
        raise ValueError(f"the checker does not know the rule {rule}")
    at = since.replace(second=0, microsecond=0) + MINUTE
    while at <= until:
        if _has(minutes, at.minute) and _has(hours, at.hour):
            yield at
        at += MINUTE


def _has(field: str, number: int) -> bool:
    """Return whether a field has a number: `*`, `*/n` or the number itself."""
    if field.startswith("*"):
        return number % int(field[2:] or 1) == 0
    return number == int(field)


def _of_interval(
    rule: dict[str, Any], uid: str, since: datetime, until: datetime
) -> Iterator[datetime]:
    every, jitter = span(rule["every"]), span(rule.get("jitter", "PT0S"))
    anchor = _instant(rule["starting_at"]) + offset(uid, jitter)
    number = max((since - anchor) // every, 0)
    while (at := anchor + number * every) <= until:
        if at > since:
            yield at
        number += 1


def offset(uid: str, jitter: timedelta) -> timedelta:
    """Return by how much an action's own jitter moves its interval."""
    digest = hashlib.sha256(UUID(uid).bytes).digest()
    seconds = int(jitter.total_seconds())
    number = int.from_bytes(digest[:8], "big")
    return timedelta(seconds=number % seconds if seconds else 0)


def span(text: str) -> timedelta:
    """Return an ISO 8601 duration of seconds."""
    return timedelta(seconds=int(text.removeprefix("PT").removesuffix("S")))


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
