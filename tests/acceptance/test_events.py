"""What users do, told on the command line, runs actions by a real daemon and worker."""

import json
from typing import Any

from tests.acceptance.installation import Installation
from tests.acceptance.processes import until

PAID = {"name": "thanks", "operations": {"trace_one": True}, "when": {"on": "order.paid"}}


def add(installation: Installation, kind: str, document: dict[str, Any]) -> Any:
    """Store a document by the command line."""
    file = installation.file(f"{document['name']}.json")
    file.write_text(json.dumps(document))
    return installation.cli(kind, "add", str(file))


def test_each_order_runs_once_with_two_daemons_of_which_one_is_killed(
    installation: Installation,
) -> None:
    installation.cli("user", "add", "ann@example.com", "--activated-at", "now")
    add(installation, "action", PAID)
    installation.worker()
    killed = installation.daemon()
    installation.daemon()

    send = ("event", "send", "order.paid", "--user", "ann@example.com", "--id")
    for number in range(4):
        installation.cli(*send, str(number))
        again = installation.cli(*send, str(number))
        assert again["change"] == "known"
        if number == 1:
            killed.kill()
    until(lambda: installation.count_of("success") == 4, "each order has run")

    rows = installation.rows()
    assert sorted(row["event_id"] for row in rows) == ["0", "1", "2", "3"]
    assert all(
        installation.trace.story(row["id"]) == [(1, "trace_one", "start"), (1, "trace_one", "end")]
        for row in rows
    )
