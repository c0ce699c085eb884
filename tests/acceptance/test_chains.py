"""An action that is due by the end of another one starts at once, and is never lost."""

from typing import Any

import pytest
import sqlalchemy as sa

from scheduler.changes import Change
from tests.acceptance.installation import Installation
from tests.acceptance.processes import kill, until


def chain(installation: Installation, **steps: Any) -> list[Change]:
    """Store three actions, each of which is due by the end of the one before."""
    made = [installation.action("first", operations=steps or {"trace_one": True})]
    for name, before in (("second", "first"), ("third", "second")):
        made.append(installation.action(name, when={"after": {"action": before}}))
    return made


@pytest.mark.parametrize("store", ["postgresql"])
def test_a_worker_that_is_killed_right_after_an_end_loses_no_dependant(
    installation: Installation,
) -> None:
    """On SQLite nothing can hold it there."""
    gate = installation.file("go")
    one, two, three = chain(installation, trace_one={"until": str(gate)})
    installation.worker(is_awaited=True)
    id = installation.operation(one)
    installation.send()
    pid = installation.step_starts(id)
    with installation.engine.begin() as connection:
        connection.execute(sa.text("LOCK TABLE action_cursor"))
        gate.touch()
        installation.becomes(id, "success")
        kill(pid)
    before = installation.rows(two.uid)

    installation.daemon()
    until(lambda: installation.count_of("success") == 3, "the chain has run")

    assert before == []
    assert [len(installation.rows(action.uid)) for action in (one, two, three)] == [1, 1, 1]
