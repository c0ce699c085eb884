"""What people without an account may see of a small app that allows it."""

from collections.abc import Collection

from pydantic import Field

from models.sql import read_clock
from models.store.tenants import app_status
from models.tenant.document import APP_NAME
from runtime.database import glancing
from views.installation import Installation
from views.view import Instant, View


class PublicStatus(View):
    """How fresh the data of a small app are, and whether they change now."""

    data_updated_at: Instant | None = Field(
        description="When the newest data that readers see were read; null: there are none."
    )
    next_run_at: Instant | None = Field(description="When the next update is due; null: none is.")
    is_running: bool = Field(description="Whether an update runs.")
    blocking_maintenance: bool = Field(
        description="Whether data change now, so that a page should cover them."
    )
    eta_s: float | None = Field(
        description="How long the update probably still takes; null: unknown, or longer than usual."
    )
    eta_earliest_s: float | None = Field(description="How long it takes at least, as `eta_s`.")
    eta_latest_s: float | None = Field(description="How long it usually takes at most, as `eta_s`.")
    is_longer_than_usual: bool = Field(description="Whether it should have ended by now.")


def public_statuses(
    installation: Installation, names: Collection[str]
) -> dict[str, PublicStatus | None]:
    """Return the status of those small apps whose documents make it public, by name."""
    # Strangers choose the names: some of what they send no database takes.
    possible = [name for name in names if APP_NAME.fullmatch(name)]
    with glancing(installation.engine) as connection:
        shown = app_status.public_apps(connection, possible)
        now, lease = read_clock(connection), installation.settings.worker.lease
        found = app_status.statuses_of(connection, shown, now, lease)
    return {
        shown[id]: PublicStatus(
            is_running=status["status"] == "running",
            **{name: one for name, one in status.items() if name in PublicStatus.model_fields},
        )
        for id, status in found.items()
    }
