"""Commands that follow an operation to its end, and its log."""

import pytest

from tests.acceptance.crews import OurSteps
from tests.acceptance.installation import Installation
from tests.acceptance.processes import Process

# The store.
pytestmark = pytest.mark.parametrize("store", ["sqlite"])


def watching(installation: Installation, *command: str) -> Process:
    return installation.processes.start("follows", installation.command(*command))


def test_an_operation_is_followed_to_its_end_and_its_log_as_well(
    installation: Installation,
) -> None:
    crew = OurSteps(installation)
    id = crew.due()
    watch = watching(installation, "run", "watch", str(id))
    as_json = watching(installation, "--json", "run", "watch", str(id))
    log = watching(installation, "run", "logs", "-f", str(id))
    watch.said("pending")
    crew.send()
    crew.worker()
    crew.begins(id)
    watch.said("running")
    log.said("step trace_two of attempt 1")
    crew.open()

    assert (watch.ended(), as_json.ended(), log.ended()) == (0, 0, 0)
    states = [line.split(":")[0].split(",")[0] for line in watch.text().splitlines()]
    assert list(dict.fromkeys(states))[-2:] == ["running", "success"]
    assert as_json.text().splitlines()[-1].startswith('{"id": ')
    assert log.text().count("step trace_two of attempt 1") == 1


def test_what_goes_wrong_ends_the_watch_with_its_reason(installation: Installation) -> None:
    id = installation.operation(installation.action(policy={"time_limit": "PT1M"}))
    watch = watching(installation, "run", "watch", str(id))
    watch.said("pending")

    installation.cli("run", "cancel", str(id))

    assert watch.ended() == 1
    assert watch.text().splitlines()[-1].startswith("cancelled: cancelled by ")
