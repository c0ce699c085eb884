"""An agent that workers find at a socket, instead of one that a worker started."""

import grp
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from minutebook.agents import AgentBeside
from models.errors import Refused
from models.store import workers as worker_store
from models.tables import workers
from runtime.clock import wait_for
from runtime.config import Settings
from runtime.database import reading
from tasks.agent import Agent
from tasks.agent import socket as agent_socket
from tasks.agent.session import LONGEST_LINE
from tasks.agent.socket import check_folder, listening
from tests.celery_messages import TASK
from tests.integration.tasks.agent.test_agent import Asked, listens, make_sent, serving

SHOP = {"name": "shop@host", "queues": ["shop"], "follows": [TASK], "pid": 4711}
ENDLESS = b"x" * 65_536


@pytest.fixture
def sidecar(engine: sa.Engine, settings: Settings, path: Path) -> Iterator[Agent]:
    yield from serving(engine, settings, path, None)


def recorded(engine: sa.Engine) -> dict[str, bool]:
    """Return the workers on record, and whether each still runs."""
    with reading(engine) as connection:
        rows = connection.execute(sa.select(workers.c.name, workers.c.stopped_at)).all()
    return {row.name: row.stopped_at is None for row in rows}


def beside(path: Path, **changes: Any) -> AgentBeside:
    return AgentBeside(str(path), {**SHOP, **changes}, wait_s=1.0)


def test_workers_are_on_record_once_they_have_started_and_until_they_leave(
    engine: sa.Engine, sidecar: Agent, path: Path
) -> None:
    first, second = beside(path), beside(path, name="other@host")
    assert recorded(engine) == {}

    first.start()
    second.start()
    both = recorded(engine)
    first.stop()

    assert both == {"shop@host": True, "other@host": True}
    assert wait_for(lambda: not recorded(engine)["shop@host"], 10)
    assert recorded(engine)["other@host"]
    second.stop()


def test_the_parameters_of_followed_tasks_are_on_record(
    engine: sa.Engine, sidecar: Agent, path: Path
) -> None:
    takes = {TASK: ["city", "limit=5"], "celery.backend_cleanup": []}
    beside(path, signatures=takes).start()
    beside(path, name="older@host").start()
    beside(path, name="nothing@host", signatures=None).start()
    beside(path, name="broken@host", signatures=[5]).start()

    with reading(engine) as connection:
        known = worker_store.task_signatures(connection, timedelta(minutes=1))
        live = worker_store.live_workers(connection, timedelta(minutes=1))

    assert known == {TASK: ("city", "limit=5")}
    assert {one["name"] for one in live} == {"shop@host", "older@host", "nothing@host"}


def test_a_task_runs_through_a_sidecar(
    engine: sa.Engine, settings: Settings, sidecar: Agent, path: Path
) -> None:
    id = make_sent(engine, settings)
    worker, task = beside(path), Asked(path)
    worker.start()

    task.start(id)

    assert task.ask("end", outcome="success", progress={})["state"] == "success"
    task.channel.close()
    worker.stop()


def test_a_sidecar_that_is_asked_to_stop_waits_for_its_workers(
    engine: sa.Engine, settings: Settings, path: Path
) -> None:
    agent = Agent(engine, settings, None)
    thread = threading.Thread(target=agent.serve, args=(path,), daemon=True)
    thread.start()
    assert wait_for(lambda: listens(path), 10)
    id, worker, task = make_sent(engine, settings), beside(path), Asked(path)
    worker.start()
    task.start(id)

    agent.leave.set()

    thread.join(2.0)
    assert thread.is_alive()
    assert task.ask("end", outcome="success", progress={})["state"] == "success"
    task.channel.close()
    worker.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert not path.exists()


def test_a_worker_that_the_agent_does_not_understand_is_refused(sidecar: Agent, path: Path) -> None:
    asked = Asked(path)
    answer = asked.ask("worker", name="shop@host")
    asked.channel.close()

    assert answer["state"] == "refused"
    assert "this release of the agent does not understand it" in answer["reason"]


@pytest.mark.parametrize("pid", [10**30, float("inf")])
def test_a_worker_with_an_impossible_pid_keeps_no_other_off_the_record(
    engine: sa.Engine, sidecar: Agent, path: Path, pid: float
) -> None:
    asked, other = Asked(path), beside(path, name="other@host")

    assert asked.ask("worker", **{**SHOP, "pid": pid})["state"] == "refused"
    other.start()

    assert recorded(engine) == {"other@host": True}
    asked.channel.close()
    other.stop()


def test_a_line_without_end_closes_its_connection(sidecar: Agent, path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as peer:
        peer.settimeout(10)
        peer.connect(str(path))
        with suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(LONGEST_LINE // len(ENDLESS) + 1):
                peer.sendall(ENDLESS)
        try:
            answer = peer.recv(1)
        except ConnectionResetError:
            answer = b""

    assert answer == b""


def test_only_the_agent_s_account_may_connect(sidecar: Agent, path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_group_may_connect_too(engine: sa.Engine, path: Path) -> None:
    group = grp.getgrgid(os.getgid()).gr_name

    with listening(path, object, group):  # type: ignore[arg-type]
        assert path.stat().st_mode & 0o777 == 0o660


def test_an_unknown_group_is_refused(path: Path) -> None:
    with pytest.raises(Refused, match="--group 'no-such-group' cannot be given the socket"):
        listening(path, object, "no-such-group")  # type: ignore[arg-type]

    assert not path.exists()


def test_a_file_in_its_place_is_kept(path: Path) -> None:
    path.write_text("a letter")

    with pytest.raises(Refused, match="is a file already; name another path"):
        listening(path, object)  # type: ignore[arg-type]

    assert path.read_text() == "a letter"


def test_a_second_agent_at_one_socket_is_refused(sidecar: Agent, path: Path) -> None:
    with pytest.raises(Refused, match="another agent serves"):
        listening(path, object)  # type: ignore[arg-type]


def test_a_folder_in_which_all_may_write_is_refused(tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)

    with pytest.raises(Refused, match=f"run chmod o-w {open_to_all}"):
        check_folder(open_to_all)
    open_to_all.chmod(0o1777)
    check_folder(open_to_all)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_that_another_account_or_group_may_change_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65_534, 0)
    with pytest.raises(Refused, match="belongs to the account 65534, which could replace"):
        check_folder(theirs)

    os.chown(theirs, 0, 65_534)
    theirs.chmod(0o775)
    with pytest.raises(Refused, match=f"the group 65534 may write in .*chmod g-w {theirs}"):
        check_folder(theirs)
    theirs.chmod(0o755)
    check_folder(theirs)


def test_connections_are_bounded_and_one_that_closes_makes_room(
    monkeypatch: pytest.MonkeyPatch, engine: sa.Engine, settings: Settings, path: Path
) -> None:
    monkeypatch.setattr(agent_socket, "MOST_CONNECTIONS", 2)

    for _ in serving(engine, settings, path, None):
        # The probe of `serving` may still have its place.
        assert wait_for(lambda: answers(path) and not answers_beside(path), 10)
        assert wait_for(lambda: answers(path), 10)


def test_a_connection_for_which_no_thread_can_start_takes_no_place(
    monkeypatch: pytest.MonkeyPatch, engine: sa.Engine, settings: Settings, path: Path
) -> None:
    monkeypatch.setattr(agent_socket, "MOST_CONNECTIONS", 2)

    for _ in serving(engine, settings, path, None):
        assert wait_for(lambda: answers(path), 10)
        # The kernel refuses every new thread of this process, as it does beyond TasksMax.
        with no_more_threads(monkeypatch):
            assert not any(answers(path) for _ in range(5))

        assert wait_for(lambda: answers(path), 10)


@contextmanager
def no_more_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        yield


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.connect(str(path))
        return is_answered(opened)


def answers_beside(path: Path) -> bool:
    """Whether a connection is answered while two others are open."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as first,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as second,
    ):
        for one in (first, second):
            one.connect(str(path))
            is_answered(one)
        return answers(path)


def is_answered(opened: socket.socket) -> bool:
    try:
        opened.sendall(b'{"verb": "beat", "n": 1}\n')
        return opened.recv(1024) != b""
    except OSError:
        return False
