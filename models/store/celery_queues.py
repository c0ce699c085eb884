"""The queues of the Celery application that actions send to, as ticks saw them in its broker."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from models.store.key_values import CELERY_QUEUES, move_value, value
from models.stored import document_in, instant_in

# Each costs a tick a question to the broker.
MOST = 50


@dataclass(frozen=True, slots=True)
class Watched:
    """A queue at the last look, and since when it has grown without ever shrinking."""

    length: int = 0
    # How many read it; None if the broker does not count them.
    readers: int | None = None
    # Its shortest length since it last shrank, and when it was first found to be longer.
    least: int = 0
    grows_since: datetime | None = None

    def after(self, length: int, readers: int | None, now: datetime) -> "Watched":
        """Return what is known after another look."""
        if readers or length < self.length or length <= self.least:
            return Watched(length, readers, least=length)
        since = self.grows_since or now
        return replace(self, length=length, readers=readers, grows_since=since)


def read(text: str | None) -> dict[str, Watched]:
    """Return the queues of a stored text, by name."""
    return {name: _watched(its) for name, its in document_in(text or "{}").items()}


def _watched(its: Any) -> Watched:
    known = its if isinstance(its, dict) else {}
    counts = {name: known.get(name) for name in ("length", "readers", "least")}
    whole = {name: one for name, one in counts.items() if isinstance(one, int)}
    return Watched(**whole, grows_since=instant_in(known.get("grows_since")))


def note(connection: sa.Connection, queues: Iterable[str]) -> None:
    """Let ticks watch these queues, too; a change of another process is left to the next call."""
    stored = value(connection, CELERY_QUEUES)
    known = read(stored)
    new = {one: Watched() for one in queues if one not in known}
    if new and len(known) < MOST:
        store(connection, stored, known | new)


def store(connection: sa.Connection, seen: str | None, queues: Mapping[str, Watched]) -> None:
    """Store what is known now; unless what is stored is still `seen`, nothing changes."""
    written = json.dumps(
        {name: asdict(one) for name, one in queues.items()}, default=datetime.isoformat
    )
    if written != seen:
        move_value(connection, CELERY_QUEUES, seen, written)
