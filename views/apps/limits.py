"""The limits that a small app has of its own."""

from collections.abc import Mapping

from pydantic import Field

from models.errors import Refused
from models.store import tenants
from models.store.tenants import app_limits
from runtime.database import reading
from views.finding import find_app
from views.installation import Installation
from views.verbs import ADMINISTER, READ, Verb
from views.view import View


class LimitsOf(View):
    """What a small app may use; 0 is no limit."""

    name: str = Field(description="Name of the small app.")
    actions: int = Field(description="How many actions it may have.")
    disk_mb: int = Field(description="MiB that its snapshots and downloads may take.")
    own: tuple[str, ...] = Field(description="Those that differ from the installation's settings.")


@Verb("show_limits", "GET /api/apps/{app=name}/limits", READ)
def limits(installation: Installation, name: str) -> LimitsOf:
    """Return what a small app may use.

    Raises NotFound.
    """
    with reading(installation.engine) as connection:
        app = find_app(connection, installation, name)
        return _shown(installation, name, app_limits.own_of(connection, app.id))


@Verb(
    "change_limits",
    "PATCH /api/apps/{app=name}/limits",
    ADMINISTER,
    body=("changes",),
    is_of_installation=True,
)
def limit(installation: Installation, name: str, changes: Mapping[str, int]) -> LimitsOf:
    """Give a small app limits of its own, and return all; raises NotFound and Refused.

    A limit of -1 is the installation's again.
    """
    for what, most in changes.items():
        if most < -1:
            raise Refused(f"{what} {most} is no limit; write 0 for none, -1 for the installation's")
    with installation.engine.begin() as connection:
        app = find_app(connection, installation, name)
        tenants.lock(connection, app.id)
        own = {**app_limits.own_of(connection, app.id), **changes}
        own = {what: most for what, most in own.items() if most >= 0}
        app_limits.set_own(connection, app.id, own)
        installation.audit(connection, app.id, "app.limit", {app.name: own})
    return _shown(installation, name, own)


def _shown(installation: Installation, name: str, own: Mapping[str, int]) -> LimitsOf:
    found = app_limits.with_own(installation.settings.limits, own)
    return LimitsOf(name=name, actions=found.actions, disk_mb=found.disk_mb, own=tuple(sorted(own)))
