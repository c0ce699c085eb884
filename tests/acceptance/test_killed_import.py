"""A worker is killed with -9 in the middle of an import."""

import json
from pathlib import Path
from typing import Any

from data import snapshots
from data.settings import settings_in
from data.store import snapshots as stored
from data.store.snapshots import Domain
from models.store import tenants
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import kill, until

# So many that writing them takes a while.
MANY = 3_000_000
DOCUMENT = {"name": "default", "domains": {"orders": {"source": {"file": "orders.csv"}}}}


def add_app(installation: Installation) -> None:
    """Store the small app with its domain."""
    file = installation.file("app.json")
    file.write_text(json.dumps(DOCUMENT))
    installation.cli("app", "apply", str(file))


def domain(installation: Installation) -> Domain:
    """Return the domain as it stands."""
    with reading(installation.engine) as connection:
        app = tenants.get(connection, "default")
        return stored.domains_of(connection, app.id)[0]


def write_source(installation: Installation, count: int) -> None:
    """Write the source anew, with so many rows."""
    file = settings_in(installation.settings).effective_data_root / "orders.csv"
    file.parent.mkdir(exist_ok=True)
    with file.open("w") as stream:
        stream.write("id,name,amount\n")
        stream.writelines(f"{n},name {n % 977},{n % 1000}.25\n" for n in range(count))


def importing(installation: Installation) -> list[Path]:
    """Return the files that imports are writing now."""
    return list((installation.home / "scratch").rglob("made.parquet"))


def test_a_killed_import_leaves_the_last_snapshot_and_production(
    installation: Installation,
) -> None:
    add_app(installation)
    write_source(installation, 2)
    steps: dict[str, Any] = {"refresh": True, "publish": {"data": True}}
    action = installation.action("orders", operations=steps)
    installation.daemon()
    installation.worker("heavy")
    first = installation.operation(action, minutes_ago=5)
    installation.becomes(first, "success")
    before = domain(installation)
    assert before.production is not None
    write_source(installation, MANY)

    second = installation.operation(action)
    until(lambda: bool(importing(installation)), "the import writes")
    kill(int(installation.row(second)["worker"].rpartition(":")[2]))

    between = domain(installation)
    assert (between.staging, between.production) == (before.staging, before.production)
    rows = list(snapshots.read(settings_in(installation.settings), before.production.path))
    assert [row["id"] for row in rows] == [0, 1]
    ended = installation.becomes(second, "success", timeout_s=120)
    assert (ended["attempt"], ended["losses"]) == (2, 1)
    after = domain(installation)
    assert after.production is not None
    assert after.production == after.staging
    assert after.production.row_count == MANY
