"""Sends schedules to the server: the newest last, whichever process sends.

A process claims a row before it asks the server, so that no two ask at once. It settles the row
only if nothing has changed it meanwhile; otherwise it sends again. The claim of a process that
died, or that got no answer, ends by itself: until then what it sent may still arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import Q
from django.db.models.functions import Now

from minutebook import actions
from minutebook.client import ApiError, Client, path_of

if TYPE_CHECKING:
    from minutebook.django.models import Schedule

CLAIM = timedelta(minutes=1)
# A request to the project itself waits no longer for the server.
TIMEOUT_S = 3.0
NOT_FOUND = 404
# Of a document that no server would accept.
INVALID = 422
# The faults of a document: another try would be refused too.
FAULTS = frozenset({400, 409, 413, INVALID})


class Unavailable(Exception):
    """The server could not be asked, or refused; the text says why."""

    def __init__(self, why: str, status: int = 0, *, may_be_done: bool = False) -> None:
        super().__init__(why)
        # That of the answer, 0 without one.
        self.status = status
        # Whether the server may have done it, or may do it yet.
        self.may_be_done = may_be_done


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise Unavailable in place of what a client raises."""
    try:
        yield
    except ApiError as error:
        is_open = error.status >= httpx.codes.INTERNAL_SERVER_ERROR
        raise Unavailable(error.detail, error.status, may_be_done=is_open) from None
    except httpx.HTTPError as error:
        is_open = not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
        raise Unavailable(f"The server does not answer: {error}", may_be_done=is_open) from None
    except (actions.NotConfigured, httpx.InvalidURL) as error:
        raise Unavailable(str(error)) from None
    # No JSON has NaN, nor half of a character.
    except ValueError as error:
        raise Unavailable(f"The document cannot be sent: {error}", INVALID) from None


def sync(using: str = DEFAULT_DB_ALIAS, *, refused: bool = False) -> Counter[str]:
    """Send what the server has not got yet; return how many are `sent`, `refused` and `pending`.

    With `refused` also what it refused before, for example because a setting did not allow a task.
    """
    rows = rows_of(using)
    if refused:
        rows.filter(state="refused").update(state="pending")
    waiting = rows.filter(state="pending")
    names = waiting.order_by("changed_at").values_list("pk", flat=True)
    counted = _send_all(dict.fromkeys(names), using)
    counted["pending"] = waiting.count()
    return counted


def send_after_commit(names: Iterable[str], using: str) -> None:
    """Send schedules once they are committed, together with all others of the transaction."""
    waiting = vars(connections[using]).setdefault("minutebook_waiting", {})
    waiting.update(dict.fromkeys(names))
    transaction.on_commit(partial(_send_all, waiting, using), using=using, robust=True)


def _send_all(waiting: dict[str, None], using: str) -> Counter[str]:
    """Send schedules; return how many stand how. Without an answer, it asks for no other."""
    counted: Counter[str] = Counter()
    names = list(waiting)
    if not names:
        return counted
    # The next call of a transaction finds none; those of a rolled back one have no row.
    waiting.clear()
    try:
        with translated_errors(), actions.client(TIMEOUT_S) as server:
            for name in names:
                counted[_sent(name, using, server)] += 1
    except Unavailable as error:
        rows_of(using).filter(pk__in=names, state="pending").update(detail=str(error))
    return counted


def _sent(name: str, using: str, server: Client) -> str:
    """Send a schedule; one that always fails at the server keeps no other from it."""
    try:
        return _send(name, using, server)
    except Unavailable as error:
        if error.status < httpx.codes.INTERNAL_SERVER_ERROR:
            raise
        rows_of(using).filter(pk=name, state="pending").update(detail=str(error))
        return "pending"


def rows_of(using: str) -> Any:
    """Return the schedules in a database; Django loads their model after its applications."""
    return apps.get_model("minutebook", "Schedule").objects.using(using)


def _send(name: str, using: str, server: Client) -> str:
    """Send a schedule until nothing has changed it meanwhile; return its state.

    It stays `pending` if another process sends it. Raises Unavailable without an answer.
    """
    rows = rows_of(using).filter(pk=name)
    while (row := _claimed(rows)) is not None:
        values = _delivered(row, rows, server)
        # An update, because it holds the row: what deletes one may look for it first.
        with transaction.atomic(using):
            if rows.filter(version=row.version).update(claimed_at=None, **values):
                if row.document is None:
                    rows.filter(state="sent").delete()
                return str(values["state"])
            rows.update(claimed_at=None)
    return "pending"


def _claimed(rows: Any) -> Schedule | None:
    """Return the newest version of a row, if it waits and no other process sends it."""
    is_free = Q(claimed_at=None) | Q(claimed_at__lt=Now() - CLAIM)
    is_mine = rows.filter(is_free, state="pending").update(claimed_at=Now())
    found: Schedule | None = rows.first() if is_mine else None
    return found


def _delivered(row: Schedule, rows: Any, server: Client) -> dict[str, Any]:
    """Ask the server for what a row says; return how it stands then."""
    try:
        with translated_errors():
            return _asked(row, server)
    except Unavailable as error:
        if error.status in FAULTS:
            return {"state": "refused", "detail": str(error)}
        if not error.may_be_done:
            rows.update(claimed_at=None)
        raise


def _asked(row: Schedule, server: Client) -> dict[str, Any]:
    if row.document is not None:
        (done,) = server.apply([row.document])
        return {"state": "sent", "detail": "\n".join(done.warnings)}
    try:
        server.call("DELETE", path_of(row.name))
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        # Another address, or a small app that is unknown, has no list of actions either.
        server.page("/api/actions", limit="1")
    return {"state": "sent"}
