"""Measures a function in its child process, and notes the memory it used."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tasks.bounded.child import Call


def measured(act: Callable[[Call], Any], call: Call) -> Any:
    """Return what `act` does of a call, or raise its error; note `peak_mb` in either case."""
    error: BaseException | None = None
    made = None
    try:
        made = act(call)
    except MemoryError:
        # Without its traceback, which holds what took the memory.
        error = MemoryError()
    except BaseException as other:
        error = other
    call.note("peak_mb", _peak_mb())
    if error is not None:
        raise error
    return made


def _peak_mb() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    # `ru_maxrss` counts the client's memory too.
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
