"""Reading of a hostile file within limits, and what then has to hold."""

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from data import importing
from data.failures import SourceFailed
from data.importing import Data
from data.importing.in_child import given_of
from data.limits import reading_limits
from data.settings import FetchSettings
from runtime.clock import monotonic
from tasks.bounded import client
from tasks.bounded.child import Call
from tasks.bounded.limits import Watch
from tests.acceptance.processes import ROOT

# The default allows more of everything.
LIMITS = FetchSettings(memory_mb=256, cpu_s=3, import_s=60, max_bytes=160 << 20, threads=1)
LONGEST_ERROR = 2_000
# What a process needs before its limits hold.
STARTED_S = 1


def read_in_bounds(name: str, format: str, made: Callable[[], bytes], folder: Path) -> str:
    """Read a hostile file; return the error, or an empty text. Fails if a limit was exceeded."""
    file = folder / "given"
    file.write_bytes(made())
    took: dict[str, float] = {}
    before, began, error = _cpu_s(), monotonic(), ""
    data = Data(file, format, "source")
    given = given_of(LIMITS, data, folder / "made.parquet", None)
    limits = reading_limits(LIMITS, data.shown, LIMITS.import_s, "SCHED_FETCH_IMPORT_S")
    try:
        with pytest.MonkeyPatch.context() as patch, data.opened() as stream:
            # The child finds the module that measures it.
            patch.setenv("PYTHONPATH", str(ROOT))
            call = client.Call(f"{__name__}:answer", given, [stream.fileno()])
            client.run(call, limits, Watch(), took.__setitem__)
    except SourceFailed as failed:
        error = str(failed)
    used = f"{name}: {took}, {error}"
    assert "No module" not in error, used
    # One that a limit killed says nothing.
    assert took.get("peak_mb", 0) <= 1.2 * LIMITS.memory_mb, used
    assert _cpu_s() - before <= 1.2 * LIMITS.cpu_s + STARTED_S, used
    assert monotonic() - began <= 1.2 * LIMITS.import_s, used
    assert "\n" not in error, used
    assert len(error) < LONGEST_ERROR, used
    return error


def answer(call: Call) -> Any:
    """Import the file of the call, and note the memory that it took; called in the child."""
    try:
        return importing.answer(call)
    except MemoryError:
        # Without its traceback, which holds what took the memory.
        raise MemoryError from None
    finally:
        lines = Path("/proc/self/status").read_text().splitlines()
        # `ru_maxrss` counts the client's memory too.
        peak = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
        call.note("peak_mb", peak)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
