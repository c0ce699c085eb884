"""What readers of a small app see: the rows of its data, its design and its permissions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from data.settings import settings_in
from data.snapshots.json_rows import Row
from runtime.database import reading
from services.installation import Installation
from services.lookup import find_app
from services.verbs import READ, Verb
from services.view import Instant, View

Place = Literal["staging", "production"]


class Published(View):
    """One version of a small app, as publishes left it."""

    published_at: Instant | None = Field(
        description="When its newest part was published; null before the first publish."
    )
    design: dict[str, dict[str, Any]] = Field(description="The design documents, by name.")
    permissions: dict[str, dict[str, Any]] = Field(
        description="The permissions documents, by name."
    )
    snapshots: dict[str, UUID] = Field(
        description="The snapshot of each domain with published rows; it changes with the data."
    )


@Verb("show_published", "GET /api/apps/{app}/published", READ)
def published(installation: Installation) -> Published:
    """Return the published design and permissions of a small app, and its domains' snapshots."""
    from data.snapshots.production import look

    version = look(installation.engine, installation.small_app.name, "production")
    return Published(
        published_at=version.published_at,
        design=dict(version.design),
        permissions=dict(version.permissions),
        snapshots={name: one.id for name, one in version.domains.items()},
    )


@Verb("read_data", "GET /api/apps/{app}/data/{domain}?staging=is_staged", READ)
@contextmanager
def open_rows(
    installation: Installation, app: str, domain: str, *, is_staged: bool
) -> Iterator[Iterator[Row]]:
    """Open the published or staged rows of a domain, all of one version; raises NotFound."""
    from data.snapshots import production

    place = _found(installation, app, is_staged=is_staged)
    settings = settings_in(installation.settings)
    with production.open_rows(installation.engine, settings, app, domain, place) as rows:
        yield rows


@contextmanager
def open_lines(
    installation: Installation, app: str, domain: str, *, is_staged: bool
) -> Iterator[Iterator[bytes]]:
    """Open the same rows as pieces of JSON Lines, written by a child process as they are taken."""
    from data.snapshots import lines, production

    place = _found(installation, app, is_staged=is_staged)
    its = (installation.engine, settings_in(installation.settings), app, domain, place)
    with production.open_rows(*its, lines.read) as pieces:
        yield pieces


def _found(installation: Installation, app: str, *, is_staged: bool) -> Place:
    with reading(installation.engine) as connection:
        find_app(connection, installation, app)
    return "staging" if is_staged else "production"
