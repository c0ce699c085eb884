"""Compute an operation's id from its action and occurrence."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha1, sha256
from uuid import NAMESPACE_OID, UUID

SEPARATOR = " | "
_NAMESPACE = NAMESPACE_OID.bytes


def str_to_uuid(text: str) -> UUID:
    """Return the UUID of a text; equal texts have equal UUIDs.

    It is `uuid5(NAMESPACE_OID, text)`, in two thirds of its time: each occurrence needs one.
    """
    digest = sha1(_NAMESPACE + text.encode(), usedforsecurity=False).digest()
    return UUID(bytes=digest[:16], version=5)


@lru_cache(maxsize=1_000)
def instant_text(instant: datetime) -> str:
    """Return an instant in UTC and whole seconds, such as `2026-11-23T06:00:00Z`.

    Raises ValueError for a naive instant.
    """
    if instant.tzinfo is None:
        raise ValueError(f"naive instant {instant!r}")
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def fingerprint(
    uid: UUID,
    occurrence: datetime,
    *,
    subject: str | None = None,
    event_id: str | None = None,
    manual: str | None = None,
) -> str:
    """Return the text that identifies an operation.

    `manual` is a random text that makes each manual run a separate operation.
    """
    parts = [str(uid), instant_text(occurrence)]
    parts += [part for part in (subject, event_id) if part is not None]
    if manual is not None:
        parts.append(f"manual {manual}")
    return SEPARATOR.join(parts)


def operation_id(uid: UUID, occurrence: datetime) -> UUID:
    """Return the operation id of an action's scheduled occurrence."""
    return str_to_uuid(fingerprint(uid, occurrence))


def keyed_run_id(uid: UUID, key: str) -> UUID:
    """Return the operation id of a manual run that its requester may ask for again by `key`."""
    return str_to_uuid(SEPARATOR.join((str(uid), f"run {key}")))


def jitter_offset(uid: UUID, spread: timedelta) -> timedelta:
    """Return this action's fixed offset in [0, spread), in whole seconds.

    Taken from the uid, not from `random`: replicas and restarts agree.
    """
    return _offset(uid.bytes, spread)


def drawn_offset(uid: UUID, nominal: datetime, spread: timedelta) -> timedelta:
    """Return the offset in [0, spread) of one occurrence of an action, in whole seconds."""
    return _offset(uid.bytes + instant_text(nominal).encode(), spread)


def _offset(seed: bytes, spread: timedelta) -> timedelta:
    seconds = int(spread.total_seconds())
    if seconds <= 0:
        return timedelta(0)
    return timedelta(seconds=int.from_bytes(sha256(seed).digest()[:8], "big") % seconds)
