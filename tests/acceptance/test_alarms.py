"""What the daemon cannot tell because it is down, web processes and workers tell: once."""

import re
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.web_door import start_web

TOLD = {"SCHED_ALERT_MAIL": "ops@example.com", "SCHED_ALERT_BROKEN_AFTER_S": "1"}


def mails(installation: Installation) -> list[str]:
    """Return the subjects of the mails to the admins, in order of their kinds."""
    files = (installation.home / "mail").glob("*.eml")
    return sorted(str(_subject(file)) for file in files)


def _subject(file: Path) -> object:
    return message_from_bytes(file.read_bytes(), policy=default)["Subject"]


def told(installation: Installation, count: int) -> list[str]:
    until(lambda: len(mails(installation)) == count, lambda: f"{mails(installation)}")
    return mails(installation)


def of_broker(installation: Installation) -> list[str]:
    """Return what was told of a broker that does not answer.

    Its ticks take twice as long as they are apart here, so that a daemon may be missed too.
    """
    pattern = re.compile(r"\[minutebook\] (\w+): Redis at \S+ does not answer")
    return [found[1] for one in mails(installation) if (found := pattern.match(one))]


def ticking(installation: Installation) -> Process:
    """Start a daemon; it has ticked on return."""
    before = len(installation.ticks())
    daemon = installation.daemon(TOLD)
    until(lambda: len(installation.ticks()) > before, "the daemon ticks")
    return daemon


def test_a_killed_daemon_is_told_once_by_one_of_two_web_processes_and_its_return(
    installation: Installation,
) -> None:
    daemon = ticking(installation)
    webs = [start_web(installation, TOLD)[0] for _ in range(2)]

    daemon.kill()
    (broken,) = told(installation, 1)
    webs[0].kill()
    start_web(installation, TOLD)
    ticking(installation)
    both = told(installation, 2)

    assert broken.startswith("[minutebook] ALERT: no daemon ticks: the last tick was by ")
    assert both == [broken, broken.replace("ALERT", "RESOLVED")]


def test_without_a_web_process_a_worker_tells(installation: Installation) -> None:
    daemon = ticking(installation)
    installation.worker(is_awaited=True, concurrency=2, settings=TOLD)

    daemon.kill()

    (broken,) = told(installation, 1)
    assert "no daemon ticks" in broken


@pytest.mark.usefixtures("installation")
def test_a_frozen_broker_is_told_once_and_when_it_is_back(installation: Installation) -> None:
    ticking(installation)
    start_web(installation, TOLD)
    installation.freeze_broker()
    until(lambda: of_broker(installation) == ["ALERT"], lambda: f"{mails(installation)}")
    installation.thaw_broker()

    both = ["ALERT", "RESOLVED"]
    until(lambda: of_broker(installation) == both, lambda: f"{mails(installation)}")
