"""A daemon of another tz release than the one that computed what is stored."""

from datetime import timedelta

import sqlalchemy as sa

from cron import tz_release
from models.store import facts
from models.store.facts import KERNEL, TZ_RELEASE
from models.tables import action_cursor
from runtime.database import reading
from tests.acceptance.installation import Installation
from tests.acceptance.processes import ROOT, python
from tests.factories import set_back, yearly

MINUTE = timedelta(minutes=1)
IN_A_YEAR = timedelta(days=365)


def stored_with(installation: Installation, release: str) -> None:
    """Let what is stored be computed with another tz release, which saw nothing due for a year."""
    with installation.engine.begin() as connection:
        facts.set_fact(connection, KERNEL, "1")
        facts.set_fact(connection, TZ_RELEASE, release)
        wrong = {"next_occurrence_at": installation.now() + IN_A_YEAR}
        connection.execute(sa.update(action_cursor).values(wrong))


def stored_release(installation: Installation) -> str | None:
    with reading(installation.engine) as connection:
        return facts.fact(connection, TZ_RELEASE)


def test_a_daemon_of_a_newer_release_files_everything_anew_before_its_first_tick(
    installation: Installation,
) -> None:
    actions = [installation.due_action(f"due {number}") for number in range(3)]
    stored_with(installation, "2020a")

    daemon = installation.daemon()
    daemon.said("tick 2")

    said = daemon.text()
    assert "the next tick schedules all actions again" in said.partition("tick 2")[0]
    assert installation.ticks()[0]["report"]["recorded"] == 3
    assert len(installation.rows(*(action.uid for action in actions))) == 3
    assert stored_release(installation) == tz_release()


def test_a_daemon_of_an_older_release_refuses_to_start_and_changes_nothing(
    installation: Installation,
) -> None:
    installation.due_action()
    stored_with(installation, "2999z")

    daemon = installation.daemon()
    code = daemon.ended()
    once = installation.processes.run(python(str(ROOT / "scheduler_server.py"), "--once"))

    assert (code, once.returncode) == (2, 2)
    for said in (daemon.text(), once.stderr):
        assert "tz 2999z" in said
        assert "upgrade it (the tzdata package) and start again" in said
    assert installation.rows() == []
    assert installation.ticks() == []
    assert stored_release(installation) == "2999z"


def test_a_daemon_that_runs_on_decides_nothing_once_a_newer_one_was_there(
    installation: Installation,
) -> None:
    daemon = installation.daemon()
    daemon.said("tick 2")
    now = installation.now().replace(second=0, microsecond=0)
    action = installation.action(when=yearly(now))
    with installation.engine.begin() as connection:
        facts.set_fact(connection, TZ_RELEASE, "2999z")
    set_back(installation.engine, action.uid, now - MINUTE)

    daemon.said("this daemon decides nothing")
    home = ("--home", str(installation.home))
    refused = installation.processes.run(
        python("-m", "minutebook", *home, "action", "pause", action.name)
    )

    assert installation.rows(action.uid) == []
    assert refused.returncode == 2
    assert "and the daemon of this database kernel 1, tz 2999z; upgrade it" in refused.stderr
    assert daemon.is_alive
