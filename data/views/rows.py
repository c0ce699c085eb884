"""The rows of a small app's data, published or staged."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from data.snapshots.json_rows import Row
from runtime.database import reading
from views.finding import find_app
from views.installation import Installation
from views.verbs import READ, Verb

Place = Literal["staging", "production"]


@Verb("read_data", "GET /api/apps/{app}/data/{domain}?staging=is_staged", READ)
@contextmanager
def open_rows(
    installation: Installation, app: str, domain: str, *, is_staged: bool
) -> Iterator[Iterator[Row]]:
    """Open the published or staged rows of a domain, all of one version; raises NotFound."""
    from data.snapshots.production import open_version

    place = _found(installation, app, is_staged=is_staged)
    with open_version(installation.engine, installation.settings, app, place, [domain]) as version:
        yield iter(version.rows(domain))


@contextmanager
def open_lines(
    installation: Installation, app: str, domain: str, *, is_staged: bool
) -> Iterator[Iterator[bytes]]:
    """Open the same rows as pieces of JSON Lines, written by a child process as they are taken."""
    from data.snapshots import lines
    from data.snapshots.production import open_version

    place = _found(installation, app, is_staged=is_staged)
    only = [domain]
    engine, settings = installation.engine, installation.settings
    with open_version(engine, settings, app, place, only, lines.read) as version:
        yield version.rows(domain)


def _found(installation: Installation, app: str, *, is_staged: bool) -> Place:
    with reading(installation.engine) as connection:
        find_app(connection, installation, app)
    return "staging" if is_staged else "production"
