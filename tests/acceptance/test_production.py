"""A reader in a loop, while versions are published and pruned, and workers are killed at it."""

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from data.settings import settings_in
from scheduler.changes import Change
from scheduler.changes.change import create_all
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, python, until
from tests.factories import author, make_document

READER = Path(__file__).with_name("production_reader.py")
RENEW = {
    "refresh": {"force": True},
    "publish": {"data": True, "design": True, "notify": False},
    "maintenance": True,
}
PRUNE = {"SCHED_RETENTION_SNAPSHOTS": "1"}


def write_version(installation: Installation, number: int) -> None:
    """Let sources and staged design say `number`."""
    data = settings_in(installation.settings).effective_data_root
    data.mkdir(parents=True, exist_ok=True)
    for name in ("a", "b"):
        (data / f"{name}.csv").write_text(f"version\n{number}\n{number}\n")
    app = installation.file("app.json")
    document = {
        "name": "default",
        "domains": {name: {"source": {"file": f"{name}.csv"}} for name in ("a", "b")},
        "design": {"start": {"version": number}},
    }
    app.write_text(json.dumps(document))
    installation.cli("app", "apply", str(app))


def renewal(installation: Installation, action: Change, number: int) -> UUID:
    """Send an operation that publishes version `number`."""
    write_version(installation, number)
    # Ever fewer minutes: a minute that passes in between does not make two occurrences one.
    id = installation.operation(action, minutes_ago=20 - number)
    installation.send()
    return id


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_read_sees_one_whole_version(installation: Installation) -> None:
    """Two domains and the design have to agree; workers are killed in refresh and in publish."""
    # Not by the daemon: what is written is whole when an operation of ours begins, not before.
    when = {"every": "PT1H", "starting_at": "2100-01-01T00:00:00Z"}
    document = make_document(name="renew", operations=RENEW, when=when, policy={"overlap": "allow"})
    action = create_all(installation.engine, [document], author())[0]
    installation.daemon()
    worker = installation.worker("heavy", settings=PRUNE)
    installation.becomes(renewal(installation, action, 1), "success")
    lines, stop = installation.file("lines"), installation.file("stop")
    command = python(str(READER), str(installation.home), str(lines), str(stop))
    reader = installation.processes.start("reader", command)
    until(lambda: lines.exists() and len(lines_of(lines)) > 1, reader.text)

    ids = []
    for number, doomed_step in enumerate(["refresh", None, "publish", "publish", None], 2):
        ids.append(renewal(installation, action, number))
        if doomed_step is not None:
            worker = killed_in(installation, worker, ids[-1], doomed_step)
        installation.becomes(ids[-1], "success")
    until(lambda: lines_of(lines)[-1].get("a") == [6], lambda: str(lines_of(lines)[-1]))
    stop.touch()
    reader.ended()

    assert sum(installation.row(id)["losses"] for id in ids) > 0
    judge(lines_of(lines))


def killed_in(installation: Installation, worker: Process, id: UUID, step: str) -> Process:
    """Kill the worker once the operation's step has begun; return the one that follows."""

    def began(row: dict[str, Any]) -> bool:
        return any(one["name"] == step and "started_at" in one for one in row["steps"] or [])

    installation.awaits(id, began)
    worker.kill()
    return installation.worker("heavy", settings=PRUNE)


def judge(read: list[dict[str, Any]]) -> None:
    """Hold each read against what it may see: one version, and none older than the one before."""
    assert [line for line in read if "error" in line] == []
    assert [line for line in read if len({str(part) for part in line.values()}) > 1] == []
    seen = [line["a"][0] for line in read]
    assert seen == sorted(seen)
    assert {seen[0], seen[-1]} == {1, 6}
