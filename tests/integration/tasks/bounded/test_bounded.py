"""Child processes with limits: what each one ends with, and what it leaves behind."""

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from data.failures import SourceFailed, Stopped
from models.store.tenants import read_only
from runtime.clock import monotonic, wait_for
from tasks.bounded import client
from tasks.bounded.client import Call
from tasks.bounded.limits import Limits, Over, OverLimit, Watch
from tests.namespaces import own_namespaces

HUNGRY = "tests.integration.tasks.bounded.hungry"
NAMES = {Over.MEMORY: "SCHED_X_MB", Over.CPU: "SCHED_X_CPU_S", Over.TIME: "SCHED_X_S"}
ROOT = Path(__file__).parents[4]


@pytest.fixture(autouse=True, scope="module")
def path() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


def limits(memory_mb: int = 100, cpu_s: float = 30, time_s: float = 60) -> Limits:
    return Limits(memory_mb, cpu_s, time_s, settings=NAMES)


def asked(
    name: str, watch: Watch | None = None, within: Limits | None = None, **arguments: Any
) -> Any:
    """Call a hungry function; return its result."""
    return client.run(Call(f"{HUNGRY}:{name}", arguments), within or limits(), watch or Watch())


def test_a_call_returns_its_result_notes_and_progress() -> None:
    notes: list[Any] = []
    seen: list[Any] = []
    watch = Watch(progress=lambda done, total: seen.append((done, total)))
    # What cannot change arrives as it is.
    given = {"number": 21, "settings": read_only({"limits": {"rows": [5, 7]}})}

    call = Call(f"{HUNGRY}:double", given)
    doubled = client.run(call, limits(), watch, lambda *note: notes.append(note))

    assert doubled == {"number": 42, "settings": {"limits": {"rows": [5, 7]}}}
    assert (notes, seen) == ([("log", "doubling")], [(1, 2)])


@pytest.mark.parametrize(
    ("name", "within", "error", "is_permanent"),
    [
        ("eat", limits(), "needs more than SCHED_X_MB=100 of memory; .* raise SCHED_X_MB$", True),
        ("spin", limits(cpu_s=0.3), r"needs more than SCHED_X_CPU_S=0\.3 of CPU time; .*", True),
        ("sleep", limits(time_s=0.3), r"takes longer than SCHED_X_S=0\.3; .*", False),
        ("leave", limits(), "ended its process with the code 3", False),
        ("mistake", limits(), "failed: TypeError: Object of type set", False),
    ],
)
def test_what_exceeds_a_limit_ends_with_its_name(
    name: str, within: Limits, error: str, is_permanent: bool
) -> None:
    with pytest.raises(OverLimit, match=error) as over:
        asked(name, within=within)

    assert over.value.permanent is is_permanent


@pytest.mark.parametrize("number", ["SIGSEGV", "SIGKILL"])
def test_a_crash_ends_the_child_alone(number: str) -> None:
    with pytest.raises(OverLimit, match=f"ended its process with {number}"):
        asked("crash", signal=number)

    assert asked("double", number=1) == {"number": 2}


@pytest.mark.parametrize("name", ["heed", "sleep"])
def test_a_stop_ends_the_child_soon_whether_it_heeds_or_not(name: str) -> None:
    began = monotonic()

    with pytest.raises(Stopped):
        asked(name, Watch(should_stop=lambda: monotonic() - began > 0.3))

    assert monotonic() - began < 30


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    watch = Watch(should_stop=lambda: bool(file.exists() and file.read_text()))

    with pytest.raises(Stopped):
        asked("breed", watch, file=str(file))

    pid = int(file.read_text())
    assert wait_for(lambda: not psutil.pid_exists(pid), 30)


def test_children_run_side_by_side() -> None:
    with ThreadPoolExecutor(12) as pool:
        found = list(pool.map(lambda number: asked("double", number=number), range(12)))

    assert found == [{"number": 2 * number} for number in range(12)]


def test_a_child_gets_the_open_file_and_dumps_no_core(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")

    with file.open() as stream:
        call = Call(f"{HUNGRY}:read", {}, [stream.fileno()])
        assert client.run(call, limits(), Watch()) == "text"

    seen = asked("look", secret="s3cret")
    assert seen["cores"] == "0"
    assert "s3cret" not in seen["command"]


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_child_reaches_a_network_only_if_its_call_says_so(port: int) -> None:
    own_namespaces("--net")

    online = Call(f"{HUNGRY}:connect", {"port": port}, is_online=True)
    assert client.run(online, limits(), Watch()) == "connected"
    with pytest.raises(OverLimit, match="Network is unreachable"):
        asked("connect", port=port)


PARENT = """
import sys
from tasks.bounded.client import Call, run
from tasks.bounded.limits import Limits, Watch
run(Call(sys.argv[1], {"file": sys.argv[2]}), Limits(100, 600, 600), Watch())
"""


def test_a_child_and_what_it_started_end_with_a_killed_process(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    command = [sys.executable, "-c", PARENT, f"{HUNGRY}:breed", str(file)]
    with subprocess.Popen(command, cwd=ROOT) as parent:
        assert wait_for(lambda: file.exists() and bool(file.read_text()), 60)
        ours = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(signal.SIGKILL)

    assert len(ours) == 2
    _gone, alive = psutil.wait_procs(ours, 30)
    assert not alive


def streamed(then: str, **least: float) -> Iterator[bytes]:
    """Return what a child writes before it does something."""
    return client.stream(Call(f"{HUNGRY}:write", {"then": then}), limits(**least))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("then", "least", "error"),
    [
        ("eat", {}, "needs more than SCHED_X_MB=100 of memory"),
        ("sleep", {"time_s": 0.3}, r"takes longer than SCHED_X_S=0\.3"),
        ("fail", {}, "the source is empty"),
        ("leave", {}, "ended its process with the code 3"),
    ],
)
def test_a_stream_that_is_not_whole_ends_with_an_error(then: str, least: Any, error: str) -> None:
    pieces = streamed(then, **least)

    with pytest.raises(SourceFailed, match=error):
        list(pieces)


def test_a_stream_that_is_closed_ends_its_child() -> None:
    others = psutil.Process().children()
    pieces = streamed("sleep")
    next(pieces)
    (child,) = (one for one in psutil.Process().children() if one not in others)

    pieces.close()  # type: ignore[attr-defined]

    assert not child.is_running()


def test_a_stream_may_go_on_in_another_thread() -> None:
    pieces = streamed("repeat")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(next, pieces).result()

    assert b"".join([first, *pieces]) == b"abc" * 100_000
