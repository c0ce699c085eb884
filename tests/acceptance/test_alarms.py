"""What the daemon cannot tell because it is down, web processes and workers tell: once."""

from email import message_from_bytes
from email.policy import default

import pytest

from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process, until
from tests.acceptance.web_door import start_web

TOLD = {"SCHED_ALERT_MAIL": "ops@example.com", "SCHED_ALERT_BROKEN_AFTER_S": "1"}


def subjects(installation: Installation) -> list[str]:
    """Return the subjects of the mails to the admins, in order of their kinds."""
    files = (installation.home / "mail").glob("*.eml")
    mails = (message_from_bytes(file.read_bytes(), policy=default) for file in files)
    return sorted(str(mail["Subject"]) for mail in mails)


def told(installation: Installation, count: int) -> list[str]:
    until(lambda: len(subjects(installation)) == count, lambda: f"{subjects(installation)}")
    return subjects(installation)


def ticking(installation: Installation) -> Process:
    """Start a daemon; it has ticked on return."""
    before = len(installation.ticks())
    daemon = installation.daemon(TOLD)
    until(lambda: len(installation.ticks()) > before, "the daemon ticks")
    return daemon


@pytest.mark.parametrize("teller", ["web", "worker"])
def test_a_killed_daemon_and_its_return_are_told_once_by_a_process_that_is_left(
    installation: Installation, teller: str
) -> None:
    daemon = ticking(installation)
    if teller == "web":
        start_web(installation, TOLD)
    else:
        installation.worker(is_awaited=True, concurrency=2, settings=TOLD)

    daemon.kill()
    (broken,) = told(installation, 1)
    ticking(installation)
    both = told(installation, 2)

    assert broken.startswith("[minutebook] ALERT: no daemon ticks: the last tick was by ")
    assert both == [broken, broken.replace("ALERT", "RESOLVED")]
