"""What `/metrics` shows of data and mail."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from data.store.tables import deliveries, domains
from models.store.measures import Figure
from models.tables import operations, small_apps


def _oldest(at: sa.Column[Any]) -> sa.Select[Any]:
    """Return each live app's oldest instant of its domains."""
    query = sa.select(domains.c.small_app_id, sa.func.min(at)).join(
        small_apps, small_apps.c.id == domains.c.small_app_id
    )
    return query.where(small_apps.c.deleted_at.is_(None)).group_by(domains.c.small_app_id)


def _delivered(since: datetime, until: datetime) -> sa.Select[Any]:
    """Return how many mails were sent, or failed, within (since, until], by small app."""
    at, app = deliveries.c.updated_at, operations.c.small_app_id
    return (
        sa.select(app, deliveries.c.state, sa.func.count().label("times"))
        .join(deliveries, deliveries.c.operation_id == operations.c.id)
        .where(at > since, at <= until, deliveries.c.state != "sending")
        .group_by(app, deliveries.c.state)
    )


REFRESHED = Figure(
    "data_refresh_age_seconds",
    "Age of the app's oldest refreshed domain.",
    lambda: _oldest(domains.c.refreshed_at),
)
PUBLISHED = Figure(
    "data_publish_age_seconds",
    "Age of the app's oldest published domain.",
    lambda: _oldest(domains.c.published_at),
)
DELIVERIES = Figure("deliveries", "Mails that were sent or failed.", _delivered)
