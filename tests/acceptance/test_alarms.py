"""What the daemon cannot tell because it is down, web processes and workers tell: once."""

from email import message_from_bytes
from email.policy import default
from pathlib import Path

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
