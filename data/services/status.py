"""The status of a small app's data: in its view, for pages that poll, for everybody."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import Field

from data.store import small_apps, status
from models.sql import read_clock
from models.store import tenants
from models.tenant.document import APP_NAME
from runtime.database import glancing, reading
from services.installation import Installation
from services.lookup import find_app
from services.view import Instant, View


class Domain(View):
    """A domain of data: rows that were refreshed, and rows that readers see."""

    name: str = Field(description="Name of the set of data.")
    staged_rows: int | None = Field(description="Rows in staging; null before the first refresh.")
    refreshed_at: Instant | None = Field(description="When staging was brought up to date last.")
    published_rows: int | None = Field(
        description="Rows that readers see; null before the first publish."
    )
    published_at: Instant | None = Field(description="When production was moved last.")


class Freshness(View):
    """How fresh the data of a small app are, and whether they change now."""

    data_updated_at: Instant | None = Field(
        description="When the newest data that readers see were read; a failed run leaves it."
    )
    next_run_at: Instant | None = Field(
        description="When the next refresh is due by the clock; null: none is."
    )
    blocking_maintenance: bool = Field(
        description="Whether data change now, so that a page should cover them."
    )
    eta_s: float | None = Field(
        description="How long it probably still takes; null: unknown, or longer than that."
    )
    is_longer_than_usual: bool = Field(description="Whether it takes twice as long as usual.")


class DataStatus(Freshness):
    """The status of a small app's data."""

    status: str = Field(description="`running`, `ready`, `failed`, or `empty` before a refresh.")
    phase: str | None = Field(
        description="Of what runs: `probe`, `download`, `import`, `publish` or a step's own."
    )
    message: str | None = Field(description="What the step that runs reported last.")
    last_error: str | None = Field(description="Why the last refresh failed, or failed in part.")
    run_type: Any = Field(description="Of the last refresh: `complete`, `cached` or `bootstrap`.")
    rewritten: Any = Field(description="Domains that the last refresh staged anew.")
    reused: Any = Field(description="Domains that the last refresh did not have to read.")
    eta: Instant | None = Field(description="Estimated end of what runs.")
    started_at: Instant | None = Field(description="Start of what runs.")
    elapsed_s: float | None = Field(description="How long it has run.")


class PublicStatus(Freshness):
    """What people without an account see of it."""

    is_running: bool = Field(description="Whether an update runs.")


class DataOfApp(View):
    """The data of a small app: its domains, and their status."""

    domains: tuple[Domain, ...] = Field(description="Its sets of data, by name.")
    data: DataStatus = Field(description="How fresh its data are.")


def status_of(installation: Installation, name: str) -> DataStatus:
    """Return the status of a small app's data; raises NotFound."""
    with glancing(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return _status(connection, installation, app.id, read_clock(connection))


def shown(
    connection: sa.Connection, installation: Installation, app_id: int, now: datetime
) -> dict[str, Any]:
    """Return what the view of a small app shows of its data."""
    domains = small_apps.domains_of(connection, app_id)
    return {
        "domains": tuple(Domain(**one) for one in domains),
        "data": _status(connection, installation, app_id, now),
    }


def data_of(installation: Installation, name: str) -> DataOfApp:
    """Return the domains of a small app, and the status of their data; raises NotFound."""
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return DataOfApp(**shown(connection, installation, app.id, read_clock(connection)))


def statuses(installation: Installation, names: Collection[str]) -> dict[str, DataStatus]:
    """Return the status of those small apps that exist, by name."""
    with reading(installation.engine) as connection:
        apps = {app.id: app.name for app in tenants.listed(connection) if app.name in names}
        now, lease = read_clock(connection), installation.settings.worker.lease
        found = status.statuses_of(connection, apps, now, lease)
    return {apps[id]: DataStatus(**one) for id, one in found.items()}


def _status(
    connection: sa.Connection, installation: Installation, app: int, now: datetime
) -> DataStatus:
    lease = installation.settings.worker.lease
    return DataStatus(**status.statuses_of(connection, [app], now, lease)[app])


def public_status(installation: Installation, name: str) -> PublicStatus | None:
    """Return the status of a small app, None unless its document makes it public."""
    # Strangers choose the name: some of what they send no database takes.
    if not APP_NAME.fullmatch(name):
        return None
    with glancing(installation.engine) as connection:
        id = status.public_app(connection, name)
        if id is None:
            return None
        found = _status(connection, installation, id, read_clock(connection))
    values = {key: one for key, one in found if key in PublicStatus.model_fields}
    return PublicStatus(is_running=found.status == "running", **values)
