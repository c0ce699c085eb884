"""Deliveries of mail: one row per (operation, step, recipient), written before SMTP.

A row that stays `sending` belongs to an attempt that was cut off before it recorded the server's
answer. The next attempt sends again under the same Message-ID, by which receivers recognise a
duplicate. A recipient marked `sent` is never sent to again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Literal, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from data.store.tables import deliveries
from models.sql import database_now, insert_into


@dataclass(frozen=True, slots=True)
class Delivery:
    """The key of a delivery."""

    operation_id: UUID
    step: str
    recipient: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Final outcomes of earlier attempts: recipients served, and permanently refused ones.

    `refused` maps a recipient to the address and the reason.
    """

    had_it: frozenset[str]
    refused: Mapping[str, tuple[str, str]]


def settled(connection: sa.Connection, operation_id: UUID, step: str) -> Settled:
    """Return the final outcomes of this operation and step."""
    query = sa.select(deliveries).where(
        deliveries.c.operation_id == operation_id,
        deliveries.c.step == step,
        sa.or_(deliveries.c.state == "sent", deliveries.c.is_permanent),
    )
    rows = connection.execute(query).all()
    return Settled(
        frozenset(row.recipient for row in rows if row.state == "sent"),
        {row.recipient: (row.address, row.error or "") for row in rows if row.state == "failed"},
    )


class Reserved(NamedTuple):
    """The Message-ID of a reserved delivery, and its instant by the database's clock."""

    message_id: str
    at: datetime


def reserve(
    connection: sa.Connection, delivery: Delivery, address: str, message_id: str
) -> Reserved | None:
    """Mark the delivery `sending`; return its id and instant, None if it was sent already.

    The first attempt's Message-ID is kept; `message_id` is ignored later.
    """
    row = connection.execute(
        _reserving(connection.dialect.name),
        {
            "operation_id": delivery.operation_id,
            "step": delivery.step,
            "recipient": delivery.recipient,
            "address": address,
            "message_id": message_id,
        },
    ).one_or_none()
    return None if row is None else Reserved(row.message_id, row.updated_at)


# Cached, because it runs for each mail.
@cache
def _reserving(dialect: str) -> Any:
    proposed = insert_into(dialect, deliveries).values(state="sending", updated_at=database_now())
    again = proposed.on_conflict_do_update(
        index_elements=list(deliveries.primary_key),
        set_={
            "state": "sending",
            "address": proposed.excluded.address,
            "error": None,
            "is_permanent": False,
            "updated_at": database_now(),
        },
        where=deliveries.c.state != "sent",
    )
    return again.returning(deliveries.c.message_id, deliveries.c.updated_at)


def mark(
    connection: sa.Connection,
    delivery: Delivery,
    state: Literal["sent", "failed"],
    error: str | None = None,
    *,
    is_permanent: bool = False,
) -> None:
    """Record the outcome of a delivery; `is_permanent`: later attempts skip that address."""
    connection.execute(
        _MARK,
        {
            "its_operation": delivery.operation_id,
            "its_step": delivery.step,
            "its_recipient": delivery.recipient,
            "state": state,
            "error": error,
            "is_permanent": is_permanent,
        },
    )


_MARK = (
    sa.update(deliveries)
    .where(
        deliveries.c.operation_id == sa.bindparam("its_operation"),
        deliveries.c.step == sa.bindparam("its_step"),
        deliveries.c.recipient == sa.bindparam("its_recipient"),
    )
    .values(updated_at=database_now())
)
