"""What people without an account may see of a small app that allows it."""

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
        description="How long the update probably still takes; null: unknown, or longer than that."
    )
    is_longer_than_usual: bool = Field(description="Whether it takes twice as long as usual.")


def public_status(installation: Installation, name: str) -> PublicStatus | None:
    """Return the status of a small app, None unless its document makes it public."""
    # Strangers choose the name: some of what they send no database takes.
    if not APP_NAME.fullmatch(name):
        return None
    with glancing(installation.engine) as connection:
        id = app_status.public_app(connection, name)
        if id is None:
            return None
        now, lease = read_clock(connection), installation.settings.worker.lease
        status = app_status.statuses_of(connection, [id], now, lease)[id]
    return PublicStatus(
        is_running=status["status"] == "running",
        **{key: one for key, one in status.items() if key in PublicStatus.model_fields},
    )
