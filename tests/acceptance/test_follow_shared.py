"""The workers of one account and installation share an agent; those of two installations do not."""

import signal
from contextlib import suppress

import psutil
import pytest

from tests.acceptance.processes import Process, kill, python, until
from tests.acceptance.shop import RAN_ONCE, Shop, begins
from tests.servers import temporary_folder


@pytest.fixture
def store() -> str:
    """Which store it is makes no difference here."""
    return "sqlite"


def agents(shop: Shop) -> list[psutil.Process]:
    """Return the agents that stem from this test and still run."""
    return [one for one in shop.installation.processes.left() if _is_agent(one)]


def _is_agent(process: psutil.Process) -> bool:
    # One that ends meanwhile has no command line.
    with suppress(psutil.NoSuchProcess):
        return "agent" in process.cmdline()
    return False


def two_workers(shop: Shop, **second: str) -> list[Process]:
    """Return two workers; `second` are settings of the other one."""
    found = [shop.worker(name="one"), shop.worker(name="other", settings=second)]
    until(lambda: len(followers(shop)) == 2, "both are on record")
    return found


def followers(shop: Shop) -> set[str]:
    with shop.installation.engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT name FROM workers WHERE stopped_at IS NULL")
        return {name.partition("@")[0] for name in found.scalars()}


def test_two_workers_have_one_agent_which_outlives_the_one_that_started_it(shop: Shop) -> None:
    first, second = two_workers(shop)
    (agent,) = agents(shop)
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})

    first.send(signal.SIGTERM)
    assert first.ended() == 0
    shop.tick()
    begins(shop)
    shop.gate().touch()

    shop.installation.becomes(id, "success")
    assert agents(shop) == [agent]
    assert len(followers(shop)) == 1
    second.send(signal.SIGTERM)
    assert second.ended() == 0
    until(lambda: not agents(shop), "the agent ends by itself")


def test_workers_that_start_at_once_have_one_agent(shop: Shop) -> None:
    command = python("-m", "celery", "-A", "followed", "worker", "-c", "1", "-Q", "shop")
    for n in range(3):
        named = [*command, "-n", f"w{n}@%h"]
        shop.installation.processes.start("shop", named, shop.settings, folder=shop.folder)

    until(lambda: len(followers(shop)) == 3, "all are on record")
    assert len(agents(shop)) == 1


def test_an_agent_that_is_killed_is_started_again_by_one_of_its_workers(shop: Shop) -> None:
    first, second = two_workers(shop)
    id = shop.due("close_day", step={"kwargs": {"tills": str(shop.gate())}})
    shop.tick()
    begins(shop)

    (agent,) = agents(shop)
    kill(agent.pid)
    until(lambda: len(agents(shop)) == 1, "another agent")
    shop.gate().touch()

    assert shop.installation.becomes(id, "success")["attempt"] == 1
    assert shop.said() == RAN_ONCE
    assert first.is_alive
    assert second.is_alive


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("home", id="another_home"),
        pytest.param("database", id="another_database"),
        pytest.param("settings", id="other_settings"),
        pytest.param("own", id="an_agent_of_its_own"),
    ],
)
def test_what_is_another_s_has_another_agent(shop: Shop, other: str) -> None:
    database = {"SCHED_DATABASE_URL": f"sqlite:///{shop.installation.home}/minutebook.db"}
    settings = {
        "home": {"SCHED_HOME": str(temporary_folder()), **database},
        "database": database,
        "settings": {"SCHED_CELERY_TASKS": "tasks.close_day"},
        "own": {"SCHED_AGENT": "own"},
    }[other]

    two_workers(shop, **settings)

    assert len(agents(shop)) == 2


def test_an_agent_that_is_asked_to_stop_serves_the_worker_that_started_it_to_its_end(
    shop: Shop,
) -> None:
    first, second = two_workers(shop)
    (agent,) = agents(shop)

    agent.send_signal(signal.SIGTERM)
    id = shop.due("close_day")
    shop.tick()
    shop.installation.becomes(id, "success")
    assert agent.is_running()
    first.send(signal.SIGTERM)
    assert first.ended() == 0

    until(lambda: not agent.is_running(), "it ends with the worker that started it")
    until(lambda: len(agents(shop)) == 1, "the other worker starts another one")
    next_one = shop.due("count_stock", name="the next")
    shop.tick()
    shop.installation.becomes(next_one, "success")
    assert second.is_alive


def test_an_agent_that_stands_still_keeps_no_other_worker_from_following(shop: Shop) -> None:
    first = shop.worker(name="one")
    (still,) = agents(shop)
    first.freeze_tree()

    second = shop.worker(name="other")
    id = shop.due("close_day")
    shop.tick()

    shop.installation.becomes(id, "success")
    others = [one for one in agents(shop) if one.pid != still.pid]
    assert len(others) == 1
    first.thaw_tree()
    first.send(signal.SIGTERM)
    assert first.ended() == 0
    until(lambda: agents(shop) == others, "the first agent ends alone")
    next_one = shop.due("count_stock", name="the next")
    shop.tick()
    shop.installation.becomes(next_one, "success")
    assert second.is_alive
