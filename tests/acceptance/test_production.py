"""Data are imported, published, read in a loop, and mailed, while workers are killed at it."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import UUID

import psutil
import pytest
import sqlalchemy as sa

from data import snapshots
from data.settings import settings_in
from data.snapshots.production import look
from data.store import snapshots as stored
from data.store.snapshots import Domain
from data.store.tables import deliveries
from models.store.people.users import import_users
from models.users import parse_users
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, kill, until
from tests.factories import DEFAULT_APP, author, make_document
from tests.mail_server import mail_server
from tests.transactions import act, fetched

RENEW = {
    "refresh": {"force": True},
    "publish": {"data": True, "design": True, "notify": False},
    "maintenance": True,
}
PRUNE = {"SCHED_RETENTION_SNAPSHOTS": "1"}
# Between two reads: with none, the reader takes the time of those that publish.
PAUSE_S = 0.05
PEOPLE = [{"id": name, "email": f"{name}@example.com"} for name in ("ann", "ben", "eve")]
# So many rows that writing them takes a while.
MANY = 3_000_000


def apply_app(installation: Installation, *domains: str, **document: Any) -> Path:
    """Store the small app with these domains; return the folder of their sources."""
    file = installation.home / "app.json"
    its = {name: {"source": {"file": f"{name}.csv"}} for name in domains}
    file.write_text(json.dumps({"name": "default", "domains": its, **document}))
    installation.cli("app", "apply", str(file))
    folder = settings_in(installation.settings).effective_data_root
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def renewal(installation: Installation, action: Change, number: int) -> UUID:
    """Send an operation that publishes version `number`, which sources and design then say."""
    folder = apply_app(installation, "a", "b", design={"start": {"version": number}})
    for name in ("a", "b"):
        (folder / f"{name}.csv").write_text(f"version\n{number}\n{number}\n")
    # Ever fewer minutes: a minute that passes in between does not make two occurrences one.
    id = installation.operation(action, minutes_ago=20 - number)
    installation.send()
    return id


@contextmanager
def reading_on(installation: Installation) -> Iterator[list[dict[str, Any]]]:
    """Yield what a reader sees in a loop: the version of each part, or what went wrong."""
    settings, stop = settings_in(installation.settings), Event()
    seen: list[dict[str, Any]] = []

    def read() -> dict[str, Any]:
        production = look(installation.engine, "default", "production")
        parts = {
            name: sorted({row["version"] for row in snapshots.read(settings, one.path)})
            for name, one in production.domains.items()
        }
        return {**parts, "design": [production.design["start"]["version"]]}

    def read_on() -> None:
        while not stop.wait(PAUSE_S):
            try:
                seen.append(read())
            except Exception as error:  # any error is what the test looks for
                seen.append({"error": f"{type(error).__name__}: {error}"})

    reader = Thread(target=read_on)
    reader.start()
    try:
        yield seen
    finally:
        stop.set()
        reader.join()


def test_every_read_sees_one_whole_version(installation: Installation) -> None:
    """Two domains and the design have to agree; workers are killed in refresh and in publish."""
    # Not by the daemon: what is written is whole when an operation of ours begins, not before.
    when = {"every": "PT1H", "starting_at": "2100-01-01T00:00:00Z"}
    document = make_document(name="renew", operations=RENEW, when=when, policy={"overlap": "allow"})
    action = create_all(installation.engine, [document], author())[0]
    installation.daemon()
    worker = installation.worker("heavy", settings=PRUNE)
    installation.becomes(renewal(installation, action, 1), "success")

    ids = []
    with reading_on(installation) as read:
        until(lambda: bool(read), "the first read")
        for number, doomed_step in enumerate(["refresh", None, "publish", "publish", None], 2):
            ids.append(renewal(installation, action, number))
            if doomed_step is not None:
                worker = killed_in(installation, worker, ids[-1], doomed_step)
            installation.becomes(ids[-1], "success")
        until(lambda: read[-1].get("a") == [6], lambda: str(read[-1]))

    assert sum(installation.row(id)["losses"] for id in ids) > 0
    assert [one for one in read if "error" in one] == []
    assert [one for one in read if len({str(part) for part in one.values()}) > 1] == []
    versions = [one["a"][0] for one in read]
    assert versions == sorted(versions)
    assert {versions[0], versions[-1]} == {1, 6}


def killed_in(installation: Installation, worker: Process, id: UUID, step: str) -> Process:
    """Kill the worker once the operation's step has begun; return the one that follows."""

    def began(row: dict[str, Any]) -> bool:
        return any(one["name"] == step and "started_at" in one for one in row["steps"] or [])

    installation.awaits(id, began)
    worker.kill()
    return installation.worker("heavy", settings=PRUNE)


def domain(installation: Installation) -> Domain:
    """Return the domain as it stands."""
    return act(installation.engine, stored.domains_of, DEFAULT_APP.id)[0]


def write_orders(folder: Path, count: int) -> None:
    with (folder / "orders.csv").open("w") as stream:
        stream.write("id,name,amount\n")
        stream.writelines(f"{n},name {n % 977},{n % 1000}.25\n" for n in range(count))


def test_a_killed_import_leaves_the_last_snapshot_and_production(
    installation: Installation,
) -> None:
    folder = apply_app(installation, "orders")
    write_orders(folder, 2)
    steps: dict[str, Any] = {"refresh": True, "publish": {"data": True}}
    action = installation.action("orders", operations=steps)
    installation.daemon()
    installation.worker("heavy")
    first = installation.operation(action, minutes_ago=5)
    installation.becomes(first, "success")
    before = domain(installation)
    assert before.production is not None
    write_orders(folder, MANY)

    second = installation.operation(action)
    scratch = installation.home / "scratch"
    until(lambda: any(scratch.rglob("made.parquet")), "the import writes")
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


def mailing(installation: Installation) -> UUID:
    """Record an operation that mails news to three people."""
    apply_app(installation, templates={"news": {"subject": "News", "text": "Dear reader"}})
    act(installation.engine, import_users, DEFAULT_APP.id, parse_users(PEOPLE))
    action = installation.action(
        operations={"send_email": {"template": "news"}},
        recipients={"groups": ["all"], "include_inactivated_users": True},
    )
    return installation.operation(action)


@pytest.mark.parametrize("victim", ["child", "main"])
def test_a_message_whose_record_was_cut_off_comes_once_more_under_the_same_id(
    installation: Installation, victim: str
) -> None:
    id = mailing(installation)
    frozen: list[int] = []

    with mail_server() as server:

        def freeze(address: str) -> None:
            # Who sends stands still from before the answer until its end: it never reads it.
            if address == "ben@example.com" and not frozen:
                # Not the processes in which the child renders mails.
                (child,) = psutil.Process(first.pid).children()
                child.suspend()
                frozen.append(child.pid)

        server.on_taken = freeze
        settings = {"SCHED_SMTP_URL": server.url}
        first = installation.worker(settings=settings, is_awaited=True)
        installation.send()
        until(lambda: bool(frozen), "ben's message is taken")
        os.kill(frozen[0], signal.SIGKILL)
        if victim == "main":
            first.kill()
            installation.worker(settings=settings)
        installation.daemon(settings)
        row = installation.becomes(id, "success")

        assert row["attempt"] == 2
        assert server.recipients == [
            "ann@example.com", "ben@example.com", "ben@example.com", "eve@example.com",
        ]  # fmt: skip
        assert server.took[1][1]["Message-ID"] == server.took[2][1]["Message-ID"]
    states = fetched(installation.engine, sa.select(deliveries.c.recipient, deliveries.c.state))
    assert dict(states.all()) == dict.fromkeys(("ann", "ben", "eve"), "sent")
